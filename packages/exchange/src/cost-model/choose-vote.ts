/**
 * Chooses the fastest vote scheme from measurements. All ranks have the same measurements, and so make the same choice.
 */
import { count } from "@terse/codecs";
import type { Measured } from "./measure-link.ts";
import {
  type PredictedVote,
  type Prediction,
  predictedVotes,
  predictMean,
  predictVote,
  type Question,
} from "./predict.ts";

/** The fastest scheme of a vote, by prediction, and why. */
export interface Choice {
  readonly question: Question;
  readonly scheme: PredictedVote;
  /** All schemes that this many ranks can use, the fastest first. */
  readonly predictions: readonly { readonly scheme: PredictedVote; readonly prediction: Prediction }[];
  /** The reason in one sentence, with the times of all schemes. */
  readonly why: string;
}

export function chooseVote(question: Question, measured: Measured): Choice {
  const predictions = predictedVotes
    .flatMap((scheme) => {
      const prediction = possible(() => predictVote(scheme, question, measured));
      return prediction ? [{ scheme, prediction }] : [];
    })
    .sort((a, b) => a.prediction.seconds - b.prediction.seconds); // stable: equal times keep the order of the list
  const [fastest, ...others] = predictions.map(({ scheme, prediction }) => {
    const fields = scheme === "count" ? ` in ${count({ ranks: question.ranks }).parameters.width}-bit fields` : "";
    return `${scheme}${fields} ${timeText(prediction.seconds)}`;
  });
  const { link } = measured;
  const network =
    question.ranks === 1
      ? "alone"
      : `among ${question.ranks} ranks (α ${timeText(link.alpha)}, ${rateText(link.beta)})`;
  const means = (["f32", "bf16", "int8"] as const).flatMap((type) => {
    const prediction = possible(() => predictMean(type, question, measured));
    return prediction ? [`in ${type} ${timeText(prediction.seconds)}`] : [];
  });
  const why = `a vote of ${question.n} elements ${network} should take: ${fastest}; ${others.join(", ")}; a mean ${means.join(", ")}`;
  return { question, scheme: predictions[0]!.scheme, predictions, why };
}

/** The prediction; undefined if the scheme cannot have so many ranks. */
function possible<T>(predict: () => T): T | undefined {
  try {
    return predict();
  } catch (error) {
    if (error instanceof RangeError) return undefined;
    throw error;
  }
}

const digits = (value: number) => (value >= 100 ? value.toFixed(0) : value.toPrecision(2));

function timeText(seconds: number): string {
  if (seconds >= 0.9995) return `${digits(seconds)} s`;
  return seconds >= 0.9995e-3 ? `${digits(1e3 * seconds)} ms` : `${digits(1e6 * seconds)} µs`;
}

function rateText(beta: number): string {
  const rate = 8 / beta;
  return rate >= 0.9995e9 ? `${digits(rate / 1e9)} Gbit/s` : `${digits(rate / 1e6)} Mbit/s`;
}
