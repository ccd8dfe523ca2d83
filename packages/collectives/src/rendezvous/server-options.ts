import type { GroupFailure } from "./protocol.ts";

/** Options of the rendezvous server. */
export interface RendezvousOptions {
  /** Ranks of the world. */
  size: number;
  /** Interface to listen on. Default: this machine only. */
  host?: string;
  /** Default: any free one. */
  port?: number;
  /** The shared secret. A connection without it is refused. It may be empty on loopback addresses only. */
  token: string;
  /** All ranks must have connected after so long, and called every `allGather` and `allToAll`. Default 60. */
  deadlineSeconds?: number;
  /** A link may be down for so long without ending the world. Default 8. */
  outageSeconds?: number;
  /** Attempt of the launcher; processes of another attempt are refused. */
  epoch?: string;
  /** The rank whose process runs this server, if one does. */
  holder?: number;
  /** Answers heartbeats while this process lives, even when JavaScript blocks the event loop. */
  answers?: (intervalMs: number) => HeartbeatReplies;
}

/**
 * Writes an empty line to every added connection at regular intervals. `remove` takes the number that `add` returned.
 */
export interface HeartbeatReplies {
  add(fd: number): number;
  remove(number: number): void;
  stop(): void;
}

/** The server at which the ranks of a world meet; it tells all of them when one is lost. */
export interface RendezvousServer extends AsyncDisposable {
  readonly host: string;
  readonly port: number;
  /** Why the world failed: a rank is lost or missing, or one aborted. Settles only if that happens. */
  readonly failure: Promise<GroupFailure>;
  /** All ranks have left. */
  readonly finished: Promise<void>;
  /** After `unref` Node may exit although the server still listens; `ref` undoes that. */
  unref(): void;
  ref(): void;
  close(): Promise<void>;
}
