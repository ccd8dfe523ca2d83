/** For tests: each kind of exchange as a function, and its cost. */
import type { Codec, Floats } from "@terse/codecs";
import type { BufferLike, Group } from "@terse/collectives";
import type { Cost } from "../cost.ts";
import { type CallOptions, carryAlone } from "../kinds/carry-alone.ts";
import * as computed from "../kinds/computed-mean.ts";
import type { Kind } from "../kinds/kind.ts";
import { mean as meanKind } from "../kinds/mean.ts";
import * as compensated from "../kinds/mean-error-compensated.ts";
import * as sign from "../kinds/sign-of-levels.ts";
import * as sparseKind from "../kinds/sparse.ts";
import { sum as sumKind } from "../kinds/sum.ts";
import * as fields from "../kinds/sum-of-fields.ts";
import * as levels from "../kinds/sum-of-levels.ts";
import * as direct from "../kinds/sum-of-levels-direct.ts";
import { vote as voteKind } from "../kinds/vote.ts";
import { dense } from "../means/dense.ts";
import type { DenseType } from "../means/dense-scheme.ts";
import type { PackedBits, Tally, Ternary } from "../packed-bits.ts";
import { standardSchemes } from "../schemes.ts";
import type { Outcome, Result } from "../votes/outcome.ts";
import type { VoteScheme } from "../votes/vote-scheme.ts";

const alone =
  <O extends object, P, R, M>(kind: Kind<Floats, O, P, R, M>) =>
  (group: Group, x: Floats, options: O, call?: CallOptions): Promise<R> =>
    carryAlone(kind, group, x, options, call);

export const computedMean = alone(computed.computedMean);
export const meanErrorCompensated = alone(compensated.meanErrorCompensated);
export const sparse = alone(sparseKind.sparse);
export const sum = alone(sumKind);
export const sumOfFields = alone(fields.sumOfFields);
export const sumOfLevels = alone(levels.sumOfLevels);
export const sumOfLevelsDirect = alone(direct.sumOfLevelsDirect);
export const signOfLevels = alone(sign.signOfLevels);

export const mean = (group: Group, x: BufferLike, call?: CallOptions) => carryAlone(meanKind, group, x, {}, call);
export const meanIn = (type: DenseType, group: Group, x: BufferLike, call?: CallOptions) =>
  carryAlone(meanKind, group, x, {}, { ...call, schemes: { means: dense(type) } });

export const vote = (
  votes: VoteScheme,
  group: Group,
  u: PackedBits,
  { outcome, ...call }: CallOptions & { outcome: Outcome },
): Promise<Result> => carryAlone(voteKind, group, u, { outcome }, { ...call, schemes: { votes } });

const { votes } = standardSchemes;
export const majority = (group: Group, u: PackedBits, tie: "plus" | "minus", call?: CallOptions) =>
  vote(votes, group, u, { ...call, outcome: tie }) as Promise<PackedBits>;
export const majorityOrZero = (group: Group, u: PackedBits, call?: CallOptions) =>
  vote(votes, group, u, { ...call, outcome: "zero" }) as Promise<PackedBits | Ternary>;
export const tally = (group: Group, u: PackedBits, call?: CallOptions) =>
  vote(votes, group, u, { ...call, outcome: "tally" }) as Promise<Tally>;

const costOf =
  <M>({ cost }: Pick<Kind<never, never, never, unknown, M>, "cost">) =>
  (n: number, ranks: number, rank: number, codec: Codec): Cost =>
    cost([{ n, codec } as M], ranks, rank, standardSchemes)[0]!;

export const sparseCost = (n: number, ranks: number, rank: number, codec: Codec, over?: sparseKind.Over): Cost =>
  sparseKind.sparse.cost([{ kind: "sparse", n, codec, over }], ranks, rank, standardSchemes)[0]!;
export const sumCost = costOf(sumKind);
export const sumOfFieldsCost = costOf(fields.sumOfFields);
export const sumOfLevelsCost = costOf(levels.sumOfLevels);
export const sumOfLevelsDirectCost = costOf(direct.sumOfLevelsDirect);
export const signOfLevelsCost = costOf(sign.signOfLevels);
export const meanErrorCompensatedCost = (n: number, ranks: number, rank: number, codec?: Codec): Cost =>
  compensated.meanErrorCompensated.cost([{ kind: "meanErrorCompensated", n, codec }], ranks, rank, standardSchemes)[0]!;
export const computedMeanCost = (n: number, ranks: number, rank: number, owner: number, result: number = n): Cost =>
  computed.computedMean.cost([{ kind: "computedMean", n, owner, result }], ranks, rank, standardSchemes)[0]!;
export const majorityCost = (n: number, ranks: number, rank: number) => votes.cost(n, ranks, rank, "plus");
