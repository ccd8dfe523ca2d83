import type { MpiWorld } from "@terse/native-collectives";
import type { Link } from "../link.ts";
import type { NcclOptions } from "./nccl-options.ts";
import type { Membership, RendezvousWorld } from "./rendezvous-world.ts";

/** What `joinWorld` gives an engine. */
export interface WorldOptions extends Membership {
  /** The rank's number on its machine. */
  readonly localRank: number;
  /** An operation that has not finished after so long fails. */
  readonly timeoutSeconds: number;
  /** Ranks must be connected after so long. */
  readonly deadlineSeconds: number;
  /** This rank's link, where one is emulated. */
  readonly emulateLink: Link | undefined;
  /** The numeric address of this machine that the other ranks can reach. */
  readonly address: () => Promise<string>;
  /** Options of the engine nccl. */
  readonly nccl: NcclOptions | undefined;
}

/** An entry of the registry in engines.ts: how ranks in processes of their own join a world over one transport. */
export interface Engine {
  /** It can slow its connections down to an emulated link. */
  readonly emulatesLinks: boolean;
  /** A world of one rank opens it too, because its memory is on a device. Others use loopback there. */
  readonly opensAlone: boolean;
  /** Why this build cannot use it, and what to do about it; undefined where it can. */
  missing(): string | undefined;
  /**
   * Its library has its own launcher, which knows rank and size. Resolves when every process of the job has called it.
   */
  startJob?(deadlineSeconds: number): Promise<MpiWorld>;
  /** This rank's world. Throws RendezvousError where the machine lacks what the engine needs. */
  world(options: WorldOptions): Promise<RendezvousWorld>;
}
