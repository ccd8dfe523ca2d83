/** The groups of local steps where the ranks of a host take their steps together. */
import type { Group } from "@terse/collectives";
import { bytesOfRound, carryAlone, fromOwner, reasonOf, StepRefusedError, standardSchemes } from "@terse/exchange";
import type { Tensor } from "@terse/tensor";
import { sentOver } from "../accounting.ts";
import type { StepReport } from "../training-optimizer.ts";

type Sent = Pick<StepReport, "bytes" | "messages">;

export interface HostGroups {
  /** The number of hosts, this rank's host, its place among the ranks there, and how many they are. */
  readonly layout: HostLayout;
  /** The ranks of this host, for the steps that they take together. */
  readonly inside: Group;
  /** The same ranks: the first one hands out what a round has brought, while steps inside go on. */
  readonly handOut: Group;
  /** The first ranks of all hosts, which carry the rounds. Undefined on the other ranks. */
  readonly between: Group | undefined;
}

export interface HostLayout {
  readonly hosts: number;
  readonly host: number;
  readonly place: number;
  readonly ranksHere: number;
}

/** Splits a group of all ranks; all of them call it. `hostOf`: the host of each rank, as any number. */
export async function hostGroups(group: Group, hostOf: readonly number[]): Promise<HostGroups> {
  const layout = layoutOf(hostOf, group.rank);
  const inside = (await group.split(layout.host))!;
  const handOut = (await group.split(layout.host))!;
  const between = await group.split(layout.place === 0 ? 0 : undefined);
  return { layout, inside, handOut, between };
}

export function layoutOf(hostOf: readonly number[], rank: number): HostLayout {
  const hosts = [...new Set(hostOf)];
  const here = hostOf.flatMap((host, each) => (host === hostOf[rank] ? [each] : []));
  return {
    hosts: hosts.length,
    host: hosts.indexOf(hostOf[rank]!),
    place: here.indexOf(rank),
    ranksHere: here.length,
  };
}

/**
 * Takes an outer step on the first rank of a host, and then gives θ̄ to the others. `step` sends nothing on these. All
 * ranks of the host throw the same StepRefusedError. Resolves to all that this rank has sent.
 */
export async function handedOut({ layout, handOut }: HostGroups, θ: Tensor, step: () => Promise<Sent>): Promise<Sent> {
  // A rank's number on its host, or a host's among the hosts, is not its number in the run.
  const withoutRank = (error: unknown): never => {
    throw error instanceof StepRefusedError ? new StepRefusedError(undefined, error.reason) : error;
  };
  if (layout.ranksHere === 1) return step().catch(withoutRank);
  const sent = () => sentOver([handOut.sent()]);
  const before = sent();
  const outcome = await step().catch((error: Error) => {
    if (error instanceof StepRefusedError) return error;
    handOut.abort(error.message); // the other ranks wait for θ̄
    throw error;
  });
  const isRefused = outcome instanceof StepRefusedError;
  const refusal = isRefused ? reasonOf(outcome) : undefined;
  await carryAlone(fromOwner, handOut, θ, { owner: 0 }, { refusal }).catch(withoutRank);
  const { bytes, messages } = isRefused ? { bytes: 0, messages: 0 } : outcome;
  const after = sent();
  return { bytes: bytes + after.bytes - before.bytes, messages: messages + after.messages - before.messages };
}

/** Payload bytes that this rank sends to those of its host when n elements of θ̄ have arrived. */
export function bytesHandedOut(hosts: HostGroups | undefined, n: number): number {
  if (!hosts) return 0;
  const { ranksHere, place } = hosts.layout;
  return bytesOfRound([{ kind: "fromOwner", owner: 0, n }], ranksHere, place, standardSchemes);
}
