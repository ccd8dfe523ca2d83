/**
 * Takes the fastest vote scheme for the length of the vector, predicted from measurements of the network and the
 * machine. All ranks have the same measurements, bit for bit, so they make the same choice without a message. All these
 * schemes give the same bits, so the choice does not change the result. `hierarchical` gives another result and is
 * never chosen.
 *
 * Sent by a rank, and held: as the chosen scheme.
 */
import { type Choice, chooseVote } from "../cost-model/choose-vote.ts";
import type { Measured } from "../cost-model/measure-link.ts";
import type { PredictedVote } from "../cost-model/predict.ts";
import { type AllToAllOptions, allToAll } from "./all-to-all.ts";
import { count } from "./count.ts";
import { type Outcome, planesOf } from "./outcome.ts";
import { parameterServer } from "./parameter-server.ts";
import { parameterServerEfficient } from "./parameter-server-efficient.ts";
import type { VoteScheme } from "./vote-scheme.ts";

export interface AutoOptions extends AllToAllOptions {
  /** The result of `measureLink` on the group that will vote. */
  readonly measured: Measured;
}

/** A vote scheme that takes the predicted fastest one for each length, and says which. */
export interface AutoVoteScheme extends VoteScheme {
  /** The scheme for n elements, and why. */
  choice(n: number, ranks: number, outcome?: Outcome): Choice;
  /** All choices so far, for votes and for costs. */
  choices(): Choice[];
}

export function auto({ measured, chunk }: AutoOptions): AutoVoteScheme {
  if (measured === undefined)
    throw new RangeError("auto: measured is missing; pass the result of measureLink on the group that will vote.");
  const schemes: Record<PredictedVote, VoteScheme> = {
    "all-to-all": allToAll({ chunk }),
    count: count(),
    "parameter-server": parameterServer(),
    "parameter-server-efficient": parameterServerEfficient(),
  };
  const choices = new Map<string, Choice>();
  const choice = (n: number, ranks: number, outcome: Outcome = "plus") => {
    const planes = planesOf(outcome, ranks);
    const key = `${n} ${ranks} ${planes}`;
    let chosen = choices.get(key);
    if (!chosen) {
      chosen = chooseVote({ n, ranks, planes, chunk }, measured);
      choices.set(key, chosen);
    }
    return chosen;
  };
  const all = Object.values(schemes);
  return {
    name: "auto",
    outcomes: schemes["all-to-all"].outcomes,
    choice,
    choices: () => [...choices.values()],
    dense: false,
    carry: (planes, outcome, context) =>
      schemes[choice(planes[0]!.length, context.size, outcome).scheme].carry(planes, outcome, context),
    cost: (n, ranks, rank, outcome) => schemes[choice(n, ranks, outcome).scheme].cost(n, ranks, rank, outcome),
    opened: async (group) => (await Promise.all(all.map((scheme) => scheme.opened(group)))).flat(),
    async close(group) {
      for (const scheme of all) await scheme.close(group); // one after the other: all ranks close in the same order
    },
  };
}
