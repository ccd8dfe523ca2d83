/**
 * What a save of local steps holds besides the state of its inner steps, which has the names that it has without local
 * steps:
 *
 *   island.<parameter>    θ, this rank's own parameters; those of the model are θ̄
 *   outer.<name>          the state of the outer steps
 *   local.rounds          a number: rounds of each fragment that have left
 *   local.pending         of a round that has arrived and is not used yet: fragment, bytes, messages, ‖Δ‖
 */
import { fromTypedArray, noGrad, type Segment, type TypedArray } from "@terse/tensor";
import type { FlatParameters } from "../flat-parameters.ts";
import { meanOf, type SavedState, SavedStateError, type Scalar, type StoredState } from "../saved-state.ts";

/** A round that has arrived, and that the ranks use later. */
export interface PendingRound {
  readonly fragment: number;
  readonly bytes: number;
  readonly messages: number;
  readonly drift: number; // ‖Δ‖ of this rank
}

const [own, outer] = ["island.", "outer."];
const [roundsKey, pendingKey] = ["local.rounds", "local.pending"];

/** Whether a tensor or number of a save belongs to local steps alone. */
const isOfLocalSteps = (name: string): boolean => /^(island|outer|local)\./.test(name);

interface Parts {
  readonly inner: SavedState;
  readonly outers: readonly SavedState[]; // by fragment
  readonly flat: FlatParameters;
  readonly rounds: readonly number[]; // by fragment
  readonly pending: PendingRound | undefined;
}

/** The state of local steps, by the names above. */
export function savedLocalSteps({ inner, outers, flat, rounds, pending }: Parts): SavedState {
  const ofOuters = outers.flatMap(({ tensors }) => [...tensors]);
  const numbersOfOuters = outers.flatMap(({ scalars }) => Object.entries(scalars));
  return {
    tensors: new Map([
      ...inner.tensors,
      ...flat.segments.map(({ name, offset, length }) => {
        return [`${own}${name}`, flat.parameters.narrow(0, offset, length)] as const;
      }),
      ...ofOuters.map(([name, tensor]) => [`${outer}${name}`, tensor] as const),
    ]),
    scalars: {
      ...inner.scalars,
      ...Object.fromEntries(numbersOfOuters.map(([name, number]) => [`${outer}${name}`, number])),
      [roundsKey]: rounds,
      ...(pending && { [pendingKey]: [pending.fragment, pending.bytes, pending.messages, pending.drift] }),
    },
  };
}

/** What saves hold of local steps, for one rank. */
export interface StoredLocalSteps {
  readonly rounds: readonly number[]; // by fragment
  readonly pending: PendingRound | undefined;
  readonly outers: readonly StoredState[]; // of all ranks that have saved
  /** θ by parameter: this rank's own, or the mean of all where the number of ranks has changed. */
  readonly θ: ReadonlyMap<string, TypedArray>;
}

interface Taker {
  readonly rank: number;
  readonly ranks: number;
  readonly fragments: number;
  readonly segments: readonly Segment[];
}

/** Undefined where the run had no local steps. SavedStateError where it had other fragments, or lacks a parameter. */
export function storedLocalSteps(
  saves: readonly StoredState[],
  { rank, ranks, fragments, segments }: Taker,
): StoredLocalSteps | undefined {
  const same = saves.length === ranks;
  const { scalars } = saves[same ? rank : 0]!;
  const rounds = scalars[roundsKey] as readonly number[] | undefined;
  if (!rounds) return undefined;
  if (rounds.length !== fragments)
    throw new SavedStateError(
      `it has ${rounds.length} fragments, and local.fragments is ${fragments}: take local.fragments: ${rounds.length}`,
    );
  const [fragment, bytes, messages, drift] = (scalars[pendingKey] ?? []) as readonly number[];
  const θ = segments.map(({ name, length }) => {
    const of = (same ? [saves[rank]!] : saves).map(({ tensors }) => tensors.get(`${own}${name}`));
    const found = of.filter((values) => values?.length === length) as TypedArray[];
    if (found.length < of.length)
      throw new SavedStateError(
        `there is no ${own}${name} of ${length} elements: the save belongs to another model; take the model of the save`,
      );
    return [name, found.length === 1 ? found[0]! : meanOf(found)] as const;
  });
  return {
    rounds,
    pending: fragment === undefined ? undefined : ({ fragment, bytes, messages, drift } as PendingRound),
    outers: saves.map(ofOuter),
    θ: new Map(θ),
  };
}

/** Sets θ of the model. */
export function restoreOwn({ parameters, segments }: FlatParameters, θ: StoredLocalSteps["θ"]): void {
  for (const { name, offset, length } of segments) {
    using stored = fromTypedArray(θ.get(name)!);
    noGrad(() => parameters.narrow(0, offset, length).copy_(stored));
  }
}

/** The part that belongs to the outer steps, by its own names. */
function ofOuter({ tensors, scalars }: StoredState): StoredState {
  const part = <T>(all: Iterable<readonly [name: string, value: T]>) =>
    [...all].flatMap(([name, value]) => (name.startsWith(outer) ? [[name.slice(outer.length), value] as const] : []));
  return { tensors: new Map(part(tensors)), scalars: Object.fromEntries(part<Scalar>(Object.entries(scalars))) };
}

/**
 * What the ranks of a run with local steps have saved of their own steps, as the save of a run with a single rank: the
 * mean of what they had. The model of such a save is θ̄.
 */
export function asOfOneRank(saves: readonly StoredState[]): StoredState {
  const [first] = saves as [StoredState, ...StoredState[]];
  const names = [...first.tensors.keys()].filter((name) => !isOfLocalSteps(name));
  const scalars = Object.entries(first.scalars).filter(([name]) => !isOfLocalSteps(name));
  const tensors = names.map((name) => {
    return [name, meanOf(saves.map(({ tensors }) => tensors.get(name)!))] as const;
  });
  return { tensors: new Map(tensors), scalars: Object.fromEntries(scalars) };
}
