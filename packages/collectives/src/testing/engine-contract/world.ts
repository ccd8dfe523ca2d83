/** The worlds that the contract's tests run in. */
import { afterAll, beforeAll, expect } from "vitest";
import {
  allGatherBytes,
  allReduceBytes,
  allToAllBytes,
  barrierBytes,
  broadcastBytes,
  gatherBytes,
  reduceScatterBytes,
  scatterBytes,
  type Volume,
} from "../../bytes.ts";
import type { Group } from "../../group.ts";

/** How an engine differs from the others because its library does. */
export interface Traits {
  /** Closed forms of the bytes and messages that a rank sends. */
  readonly volumes?: typeof wireBytes;
  /**
   * Messages have headers, so that ranks which disagree get an error, and a send or receive that has not begun can be
   * cancelled.
   */
  readonly headers?: boolean;
  /** Whether it reduces this type; it moves all of them. */
  readonly adds?: (dtype: string) => boolean;
  /** The mean over so many ranks is the rounded sum, divided once. */
  readonly dividesSums?: (ranks: number) => boolean;
  /** A NaN is the result of min and max. */
  readonly keepsNaN?: boolean;
  /** The ranks use the test's own arrays. Ranks in other processes use copies. */
  readonly sharesMemory?: boolean;
  /** Sizes of the worlds that there can be. Default: those that differ in an algorithm. */
  readonly sizes?: readonly number[];
}

const wireBytes = {
  allReduce: allReduceBytes,
  reduceScatter: reduceScatterBytes,
  allGather: allGatherBytes,
  allToAll: allToAllBytes,
  broadcast: broadcastBytes,
  gather: gatherBytes,
  scatter: scatterBytes,
  barrier: barrierBytes,
};

/** An engine that the contract runs on. */
export class EngineUnderTest {
  readonly name: string;
  readonly makeWorld: (size: number) => Promise<Group[]>;
  readonly sizes: readonly number[] | undefined;
  readonly traits: Required<Omit<Traits, "sizes">>;

  constructor(name: string, makeWorld: (size: number) => Promise<Group[]>, { sizes, ...traits }: Traits) {
    this.name = name;
    this.makeWorld = makeWorld;
    this.sizes = sizes;
    this.traits = {
      volumes: wireBytes,
      headers: true,
      adds: () => true,
      dividesSums: () => true,
      keepsNaN: true,
      sharesMemory: true,
      ...traits,
    };
  }

  /** A world for one test. */
  async withWorld(size: number, run: (groups: Group[]) => Promise<void>): Promise<void> {
    const groups = await this.makeWorld(size);
    try {
      await run(groups);
    } finally {
      await Promise.all(groups.map((group) => group.close()));
    }
  }

  /** For the names of tests that need headers. */
  get headersOnly(): string {
    return skippedUnless(this.traits.headers, "its messages have no headers");
  }
}

/** One world of `n` ranks for all tests of a `describe`. */
export class SharedWorld {
  readonly n: number;
  readonly engine: EngineUnderTest;
  groups: Group[] = [];

  constructor(engine: EngineUnderTest, n: number) {
    this.n = n;
    this.engine = engine;
    beforeAll(async () => {
      this.groups = await engine.makeWorld(n);
    });
    afterAll(async () => {
      await Promise.all(this.groups.map((group) => group.close()));
    });
  }

  /**
   * Runs the same calls on all ranks, and compares what each rank has sent with a closed form, or with the sum of
   * several.
   */
  async counted(
    call: (group: Group, rank: number) => Promise<unknown>,
    form: (rank: number) => Volume | Volume[],
  ): Promise<void> {
    const { groups } = this;
    const { headers } = this.engine.traits;
    const before = groups.map((group) => group.sent());
    await everywhere(groups, call);
    groups.forEach((group, rank) => {
      const sent = group.sent();
      const forms = [form(rank)].flat();
      const messages = forms.reduce((sum, volume) => sum + volume.messages, 0);
      expect({
        rank,
        bytes: sent.bytes - before[rank]!.bytes,
        messages: sent.messages - before[rank]!.messages,
        headerBytes: sent.headerBytes - before[rank]!.headerBytes,
      }).toEqual({
        rank,
        bytes: forms.reduce((sum, volume) => sum + volume.bytes, 0),
        messages,
        headerBytes: headers ? 32 * messages : forms.reduce((sum, volume) => sum + (volume.headerBytes ?? 0), 0),
      });
    });
  }
}

/** Runs the same call on all ranks. */
export const everywhere = <T>(groups: readonly Group[], call: (group: Group, rank: number) => Promise<T>) =>
  Promise.all(groups.map((group) => call(group, group.rank)));

/** For a test's name: why it is skipped, where it is. */
export const skippedUnless = (holds: boolean, why: string): string => (holds ? "" : ` (skipped: ${why})`);
