/**
 * Pictures of recorded runs: the validation loss of each method by steps, by bytes and by seconds, means over the seeds
 * in bands.
 */
import { type Axis, bandCurves } from "@terse/pictures/band-curves";
import { bytesText } from "@terse/train/format";
import { type Curve, spreadText } from "./curves.ts";

export const bySteps: Axis<Curve> = { label: "steps", logarithmic: false, at: (_, step) => step, text: String };

export const byBytes: Axis<Curve> = {
  label: "bytes that one worker has sent, logarithmic",
  logarithmic: true,
  at: (curve, step) => (step > 0 ? curve.bytesAfter(step) : undefined),
  text: (bytes) => bytesText(bytes).replace(/\.0+ /, " "),
};

export const bySeconds = (rate: string, text: string): Axis<Curve> => ({
  label: `seconds on links of ${text}, logarithmic`,
  logarithmic: true,
  at: (curve, step) => (step > 0 ? curve.secondsAfter(rate, step) : undefined),
  text: (seconds) => `${seconds} s`,
});

/** Undefined where there is no curve. */
export function lossCurves(
  curves: readonly Curve[],
  axes: readonly Axis<Curve>[],
  heading: { readonly title: string; readonly subtitle?: string },
): string | undefined {
  const named = curves
    .toSorted((a, b) => a.last.mean - b.last.mean)
    .map((curve) => ({ ...curve, text: `${curve.method}: ${spreadText(curve.last, curve.seeds)}` }));
  return bandCurves(named, axes, { ...heading, label: "validation loss, nats per byte" });
}
