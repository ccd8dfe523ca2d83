/** Pictures of rows, drawn as their papers draw them: docs/results/papers-ROW.svg. */
import { type Axis, type BandCurve, bandCurves } from "@terse/pictures/band-curves";
import { spreadOf } from "@terse/pictures/spread";
import { curvesOf } from "../convergence/curves.ts";
import { bySteps as curvesBySteps, lossCurves } from "../convergence/loss-curves.ts";
import { byCase } from "../measurement.ts";
import type { RecordedLine } from "../recording.ts";
import { barGroups } from "./bar-groups.ts";
import { distributionPicture } from "./distribution-picture.ts";
import { Readings } from "./item.ts";
import { recordedLines } from "./recorded.ts";

type Picture = (lines: readonly RecordedLine[]) => string | undefined;

const drawings: Readonly<Record<string, (readings: Readings) => string | undefined>> = {
  "lion-cub-figure-4": distributionPicture,

  "lion-cub-figure-5": (readings) => {
    const bars = (kind: string) =>
      readings.all(`${kind} of `).map(([rest, value]) => {
        const [, name, workers] = /^(.*), (\d+) workers$/.exec(rest)!;
        const colour = name === "1 bit" ? "own-waiting" : name!.startsWith("l1 ") ? "own" : "peer";
        return { group: `${workers} workers`, name: name!.replace("linf", "Q∞").replace("l1", "L1"), colour, value };
      });
    return barGroups({
      title: "Signs of quantised updates beside standard Lion's, after 400 steps of a small GPT",
      legend: [
        ["L1 levels", "own"],
        ["a majority vote of 1 bit", "own-waiting"],
        ["levels up to the largest value", "peer"],
      ],
      panels: [
        { label: "the same sign, share", bars: bars("match") },
        { label: "the opposite sign, share", bars: bars("flip") },
      ],
    });
  },

  "lion-cub-figure-6": (readings) =>
    numbersBySteps(readings, /^curve of (.*), seed \d+ after (\d+)$/, {
      title: "Momenta averaged at every tenth step, β₂ 0.95",
      label: "validation loss, nats per byte",
    }),

  "lion-cub-figure-7": (readings) =>
    numbersBySteps(readings, /^deviation, (.*), step (\d+)$/, {
      title: "Momenta of 4 workers: their mean deviation",
      label: "standard deviation, logarithmic",
      logarithmic: true,
    }),

  "lion-cub-figure-10": (readings) => {
    const sides = { "lion fp32": "32 bits", "lion bf16": "16 bits", "lion-cub 1-bit": "1 bit" };
    const bars = [2, 4].flatMap((ranks) =>
      Object.entries(sides).flatMap(([side, name]) => {
        const [step, waiting] = ["step_ms", "exposed_ms_least"].map((metric) =>
          readings.of(`${metric} of ${side}, ${ranks} ranks`),
        );
        const bar = { group: `${ranks} ranks`, name };
        return [
          { ...bar, colour: "own", value: step! - waiting! },
          { ...bar, colour: "own-waiting", value: waiting! },
        ];
      }),
    );
    return barGroups({
      title: "A step of a small GPT on links of 100 Mbit/s",
      legend: [
        ["forward, backward, update", "own"],
        ["communication", "own-waiting"],
      ],
      panels: [{ label: "milliseconds", bars }],
    });
  },

  "dion-figure-1b": (readings) =>
    numbersBySteps(readings, /^loss of (.*) × (\d+), seed \d+$/, {
      title: "Dion of rank d/4 and AdamW after 200 steps",
      label: "validation loss, nats per byte",
      along: "times 32 rows in a step",
    }),

  "dion-figure-3a": (readings) =>
    numbersBySteps(readings, /^loss of (with|without) (0\.\d+), seed \d+$/, {
      title: "Dion after 2,000 steps",
      label: "validation loss, nats per byte",
      along: "rank ÷ width of the model",
      name: (name) => `${name} error feedback`,
    }),

  "one-bit-lamb-figure-1": (readings) =>
    numbersBySteps(readings, /^ratio of (.*) after (\d+)$/, {
      title: "LAMB's scaling coefficients in the first block",
      label: "scaling coefficient",
      isShown: isInFirstBlock,
    }),

  "one-bit-lamb-figure-5": (readings) =>
    numbersBySteps(readings, /^norm of (.*) after (\d+)$/, {
      title: "LAMB's norms of variances in the first block",
      label: "norm of the variance, logarithmic",
      logarithmic: true,
      isShown: isInFirstBlock,
    }),
};

export const papersPictures: Readonly<Record<string, Picture>> = {
  ...Object.fromEntries(
    Object.entries(drawings).map(([row, draw]) => [
      row,
      (lines: readonly RecordedLine[]) => {
        const values = byCase(lines).get(row);
        return values && draw(new Readings(values));
      },
    ]),
  ),
  // At the batch of `bench convergence`, a small one: the row itself asks for 8 times as many rows.
  "dion-figure-1a": (lines) => {
    const shown = ["adamw", "muon", "demo", "dion", "dion-rank-0.125"];
    const curves = lines.length === 0 ? [] : curvesOf(recordedLines("convergence"));
    const title = "Dion of rank d/4 and d/8, 32 rows in a step";
    return lossCurves(
      curves.filter(({ method }) => shown.includes(method)),
      [curvesBySteps],
      { title },
    );
  },
};

const isInFirstBlock = (name: string) => name.startsWith("blocks.0.");

interface Numbers {
  readonly title: string;
  readonly label: string;
  readonly logarithmic?: boolean;
  /** Of the horizontal axis; steps unless given. */
  readonly along?: string;
  readonly name?: (name: string) => string;
  readonly isShown?: (name: string) => boolean;
}

/** A curve for each name that a pattern finds in the metrics, over the number that it finds. */
function numbersBySteps(readings: Readings, pattern: RegExp, of: Numbers): string | undefined {
  const { title, label, logarithmic = false, along = "steps", name = String, isShown = () => true } = of;
  const found = readings.all("").flatMap(([metric, value]) => {
    const [, called, at] = pattern.exec(metric) ?? [];
    return called !== undefined && isShown(called) ? [{ called, at: Number(at), value }] : [];
  });
  const curves = [...Map.groupBy(found, ({ called }) => called)].map(([called, points]) => ({
    text: name(called),
    points: [...Map.groupBy(points, ({ at }) => at)]
      .map(([step, same]) => ({ step, ...spreadOf(same.map(({ value }) => value)) }))
      .toSorted((a, b) => a.step - b.step),
  }));
  const axis: Axis<BandCurve> = { label: along, logarithmic: false, at: (_, step) => step, text: String };
  return bandCurves(curves, [axis], { title, label, logarithmic });
}
