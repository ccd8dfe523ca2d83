/** The bytes of a step's requests, in closed form. */

import type { ChosenSchemes } from "./chosen-schemes.ts";
import type { Cost } from "./cost.ts";
import { type AmongMessage, gatherAmong, meanAmong, reduceAmong } from "./kinds/among.ts";
import type { CodecMessage } from "./kinds/codec-message.ts";
import {
  type ComputedMeanMessage,
  computedMean,
  fromOwner,
  meanAtOwner,
  type OneWayMessage,
} from "./kinds/computed-mean.ts";
import type { Kind } from "./kinds/kind.ts";
import { type MeanMessage, mean } from "./kinds/mean.ts";
import { type CompensatedMessage, meanErrorCompensated } from "./kinds/mean-error-compensated.ts";
import { signOfLevels } from "./kinds/sign-of-levels.ts";
import { type SparseMessage, sparse } from "./kinds/sparse.ts";
import { sum } from "./kinds/sum.ts";
import { sumOfFields } from "./kinds/sum-of-fields.ts";
import { sumOfLevels } from "./kinds/sum-of-levels.ts";
import { sumOfLevelsDirect } from "./kinds/sum-of-levels-direct.ts";
import { type VoteMessage, vote } from "./kinds/vote.ts";

/** The parts of a request that its cost depends on: its kind, the n elements of its vector, and its codec. */
export type Message =
  | MeanMessage
  | ComputedMeanMessage
  | OneWayMessage
  | AmongMessage
  | VoteMessage
  | CompensatedMessage
  | SparseMessage
  | CodecMessage<"sum" | "sumOfFields" | "sumOfLevels" | "sumOfLevelsDirect" | "signOfLevels">;

/** All kinds, in the order in which their costs are added. */
const kinds = [
  mean,
  vote,
  computedMean,
  meanAtOwner,
  fromOwner,
  sumOfFields,
  sumOfLevelsDirect,
  meanAmong,
  reduceAmong,
  gatherAmong,
  meanErrorCompensated,
  sum,
  sumOfLevels,
  signOfLevels,
  sparse,
] as readonly Pick<Kind<unknown, unknown, unknown, unknown, unknown>, "name" | "cost">[];

/** Payload bytes that one rank sends for the requests of one round. */
export function bytesOfRound(round: readonly Message[], ranks: number, rank: number, schemes: ChosenSchemes): number {
  return costsOfRound(round, ranks, rank, schemes).reduce((sum, { bytes }) => sum + bytes, 0);
}

/** The most memory that the requests of one round hold at once besides their vectors. */
export function memoryOfRound(round: readonly Message[], ranks: number, rank: number, schemes: ChosenSchemes): number {
  return costsOfRound(round, ranks, rank, schemes).reduce((sum, { peakBytes }) => sum + peakBytes, 0);
}

/** The costs of the messages of a round, one after the other. */
const costsOfRound = (
  round: readonly Message[],
  ranks: number,
  rank: number,
  schemes: ChosenSchemes,
): readonly Cost[] =>
  kinds.flatMap(({ name, cost }) => {
    const messages = ofKind(round, name as never);
    return messages.length > 0 ? cost(messages, ranks, rank, schemes) : [];
  });

/** The messages of one kind. */
export const ofKind = <Name extends Message["kind"]>(round: readonly Message[], name: Name) =>
  round.filter((message): message is Extract<Message, { kind: Name }> => message.kind === name);
