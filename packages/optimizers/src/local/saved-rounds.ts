/**
 * What a save of local steps holds besides the state of its inner steps, which has the names that it has without local
 * steps:
 *
 *   island.<parameter>    θ, this rank's own parameters; those of the model are θ̄
 *   outer.<name>          the state of the outer steps
 *   local.rounds          a number: rounds of each fragment that have left
 *   local.pending         of a round that has arrived and is not used yet: fragment, bytes, messages, ‖Δ‖
 *   sent.<parameter>      with `rebase`: θ of its fragment when that round left
 *   local.refusal         the note of a step that this rank has refused, of which the others hear in the next round
 *   local.host            where the ranks of a host step together: hosts, this rank's one, its place there, ranks there
 */
import { noteOf, type RefusalReason, reasonOfNote } from "@terse/exchange";
import { fromTypedArray, noGrad, type Segment, type TypedArray } from "@terse/tensor";
import type { FlatParameters } from "../flat-parameters.ts";
import { meanOf, type SavedState, SavedStateError, type Scalar, type StoredState } from "../saved-state.ts";
import type { HostLayout } from "./host-groups.ts";

/** A round that has arrived, and that the ranks use later. */
export interface PendingRound {
  readonly fragment: number;
  readonly bytes: number;
  readonly messages: number;
  readonly drift: number; // ‖Δ‖ of this rank
}

const [own, outer, whenSent] = ["island.", "outer.", "sent."];
const [roundsKey, pendingKey] = ["local.rounds", "local.pending"];
const [refusalKey, hostKey] = ["local.refusal", "local.host"];

/** Whether a tensor or number of a save belongs to local steps alone. */
const isOfLocalSteps = (name: string): boolean => /^(island|outer|sent|local)\./.test(name);

/** Whether it is a tensor that a save has only while a round is under way. */
export const isOfPendingRound = (name: string): boolean => name.startsWith(whenSent);

type Parameters = Pick<FlatParameters, "parameters" | "segments">;

interface Parts {
  readonly inner: SavedState;
  readonly outers: readonly SavedState[]; // by fragment
  readonly flat: Parameters;
  readonly rounds: readonly number[]; // by fragment
  readonly pending: PendingRound | undefined;
  readonly sent: Parameters | undefined; // θ of its fragment when it left
  readonly refusal: RefusalReason | undefined;
  readonly layout: HostLayout | undefined;
}

/** The state of local steps, by the names above. */
export function savedLocalSteps({ inner, outers, flat, rounds, pending, sent, refusal, layout }: Parts): SavedState {
  const ofOuters = outers.flatMap(({ tensors }) => [...tensors]);
  const numbersOfOuters = outers.flatMap(({ scalars }) => Object.entries(scalars));
  return {
    tensors: new Map([
      ...inner.tensors,
      ...namedParts(flat, own),
      ...(sent ? namedParts(sent, whenSent) : []),
      ...ofOuters.map(([name, tensor]) => [`${outer}${name}`, tensor] as const),
    ]),
    scalars: {
      ...inner.scalars,
      ...Object.fromEntries(numbersOfOuters.map(([name, number]) => [`${outer}${name}`, number])),
      [roundsKey]: rounds,
      ...(pending && { [pendingKey]: [pending.fragment, pending.bytes, pending.messages, pending.drift] }),
      ...(refusal && { [refusalKey]: noteOf(refusal) }),
      ...(layout && { [hostKey]: numbersOf(layout) }),
    },
  };
}

const namedParts = ({ parameters, segments }: Parameters, prefix: string) =>
  segments.map(({ name, offset, length }) => [`${prefix}${name}`, parameters.narrow(0, offset, length)] as const);

/** What saves hold of local steps, for one rank. */
export interface StoredLocalSteps {
  readonly rounds: readonly number[]; // by fragment
  readonly pending: PendingRound | undefined;
  readonly refusal: RefusalReason | undefined; // of this rank; of any rank where other ranks step together
  readonly inner: readonly StoredState[]; // of the ranks that step together
  readonly outers: readonly StoredState[]; // of all ranks that have carried rounds
  /** θ by parameter: this rank's own, or the mean of all where other ranks step together than in the save. */
  readonly θ: ReadonlyMap<string, TypedArray>;
  /** In the same way θ of the pending round's fragment when it left; empty in saves without `rebase`. */
  readonly sent: ReadonlyMap<string, TypedArray>;
}

interface Taker {
  readonly rank: number;
  readonly ranks: number;
  readonly fragments: number;
  readonly segments: readonly Segment[];
  readonly layout: HostLayout | undefined; // where the ranks of a host step together
}

/** Undefined where the run had no local steps. SavedStateError where it had other fragments, or lacks a parameter. */
export function storedLocalSteps(
  saves: readonly StoredState[],
  { rank, ranks, fragments, segments, layout }: Taker,
): StoredLocalSteps | undefined {
  const [first] = saves.length === ranks ? [saves[rank]!] : saves;
  const { scalars } = first!;
  const rounds = roundsIn(first!);
  if (!rounds) return undefined;
  if (rounds.length !== fragments)
    throw new SavedStateError(
      `it has ${rounds.length} fragments, and local.fragments is ${fragments}: take local.fragments: ${rounds.length}`,
    );
  const same = saves.length === ranks && isPlaceOf(first!, layout);
  if (!same && saves.some(({ scalars }) => !(roundsKey in scalars)))
    throw new SavedStateError(
      `this rank was ${placeIn(scalars[hostKey])}, and now it is ${placeIn(layout && numbersOf(layout))}: start as many ranks on each host as before, or say in local.ranksPerHost how many there are now, and all go on from the mean of what they had`,
    );
  const [fragment, bytes, messages, drift] = (scalars[pendingKey] ?? []) as readonly number[];
  const meanOfRanks = ({ name, length }: Segment, prefix: string) => {
    const of = (same ? [first!] : saves.filter(carriesRounds)).map(({ tensors }) => tensors.get(`${prefix}${name}`));
    const found = of.filter((values) => values?.length === length) as TypedArray[];
    if (found.length < of.length)
      throw new SavedStateError(
        `there is no ${prefix}${name} of ${length} elements: the save belongs to another model; take the model of the save`,
      );
    return [name, found.length === 1 ? found[0]! : meanOf(found)] as const;
  };
  const sent = segments.filter(({ name }) => first!.tensors.has(`${whenSent}${name}`));
  return {
    rounds,
    pending: fragment === undefined ? undefined : ({ fragment, bytes, messages, drift } as PendingRound),
    refusal: (same ? [first!] : saves).map(refusalIn).find((reason) => reason !== undefined),
    inner: same ? ownOf(saves, rank, layout) : asOfOneHost(saves),
    outers: same && layout ? ofHosts(first!, layout) : saves.filter(carriesRounds).map(ofOuter),
    θ: new Map(segments.map((segment) => meanOfRanks(segment, own))),
    sent: new Map(sent.map((segment) => meanOfRanks(segment, whenSent))),
  };
}

/** Sets the parameters that a save has. */
export function restoreParameters({ parameters, segments }: Parameters, saved: ReadonlyMap<string, TypedArray>): void {
  for (const { name, offset, length } of segments) {
    const values = saved.get(name);
    if (!values) continue;
    using stored = fromTypedArray(values);
    noGrad(() => parameters.narrow(0, offset, length).copy_(stored));
  }
}

/** The part that belongs to the outer steps, by its own names. */
function ofOuter({ tensors, scalars }: StoredState): StoredState {
  const part = <T>(all: Iterable<readonly [name: string, value: T]>) =>
    [...all].flatMap(([name, value]) => (name.startsWith(outer) ? [[name.slice(outer.length), value] as const] : []));
  return { tensors: new Map(part(tensors)), scalars: Object.fromEntries(part<Scalar>(Object.entries(scalars))) };
}

/** Whether a rank has saved this where it steps together with the same ranks. */
export const isPlaceOf = ({ scalars }: StoredState, layout: HostLayout | undefined): boolean =>
  String(scalars[hostKey]) === String(layout && numbersOf(layout));

function placeIn(numbers: Scalar | undefined): string {
  const [hosts, host, , ranksHere] = (numbers ?? []) as readonly number[];
  return hosts === undefined ? "alone" : `one of the ${ranksHere} of host ${host}, of ${hosts}`;
}

const numbersOf = ({ hosts, host, place, ranksHere }: HostLayout) => [hosts, host, place, ranksHere];

/** The rounds of each fragment until a save. Undefined where the run had no local steps. */
export const roundsIn = ({ scalars }: Pick<StoredState, "scalars">): readonly number[] | undefined =>
  scalars[roundsKey] as readonly number[] | undefined;

/** Why the rank of a save has refused a step, of which the others have not heard yet. */
export const refusalIn = ({ scalars }: Pick<StoredState, "scalars">): RefusalReason | undefined =>
  reasonOfNote(Number(scalars[refusalKey] ?? 0));

/** The first rank of a host carries its rounds; without hosts each rank does. */
function carriesRounds({ scalars }: StoredState): boolean {
  const [, , place = 0] = (scalars[hostKey] ?? []) as readonly number[];
  return place === 0;
}

/** The outer part of this rank's save, in its place among the hosts: the others need not have been read. */
const ofHosts = (own: StoredState, { hosts, host }: HostLayout): StoredState[] =>
  Array.from({ length: hosts }, (_, each) => (each === host ? ofOuter(own) : { tensors: new Map(), scalars: {} }));

/** The saves of the ranks that this one steps together with. */
function ownOf(saves: readonly StoredState[], rank: number, layout: HostLayout | undefined): readonly StoredState[] {
  const first = rank - (layout?.place ?? 0); // the ranks of a host follow each other
  return saves.slice(first, first + (layout?.ranksHere ?? 1));
}

/**
 * What the ranks of a run with local steps have saved of their own steps, as the save of a run with a single host: the
 * mean of what all hosts had, rank by rank of a host. Without hosts it is that of a single rank. The model of such a
 * save is θ̄.
 */
export function asOfOneHost(saves: readonly StoredState[]): StoredState[] {
  const begins = saves.flatMap((save, rank) => (carriesRounds(save) ? [rank] : []));
  const hosts = begins.map((begin, i) => saves.slice(begin, begins[i + 1]));
  const [own] = hosts as [StoredState[]];
  const other = hosts.find(({ length }) => length !== own.length);
  if (other)
    throw new SavedStateError(
      `its hosts had ${own.length} and ${other.length} ranks, and what they had has no mean: resume with the hosts and ranks of the save`,
    );
  return own.map((_, place) => meanOfSaves(hosts.map((ranks) => ranks[place]!)));
}

function meanOfSaves(saves: readonly StoredState[]): StoredState {
  const [first] = saves as [StoredState, ...StoredState[]];
  const names = [...first.tensors.keys()].filter((name) => !isOfLocalSteps(name));
  const scalars = Object.entries(first.scalars).filter(([name]) => !isOfLocalSteps(name));
  const tensors = names.map((name) => {
    return [name, meanOf(saves.map(({ tensors }) => tensors.get(name)!))] as const;
  });
  return { tensors: new Map(tensors), scalars: Object.fromEntries(scalars) };
}
