/**
 * Writes docs/results/convergence.md and its picture: every method's losses, over the seeds, by steps, bytes and
 * seconds.
 */
import { bytesText } from "@terse/train/format";
import { type Recipe, readRecipe } from "@terse/train/recipe";
import { byCase } from "../measurement.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { rateText } from "../setting-text.ts";
import { table } from "../table.ts";
import { rates, recipe, workers } from "./convergence.ts";
import { type Curve, curvesOf, fastestPeer, reference, seedsText, spreadText, tolerance } from "./curves.ts";
import { expectationsTable } from "./expectations.ts";
import { byBytes, bySeconds, bySteps, lossCurves } from "./loss-curves.ts";
import { type Hook, intervalOf, methods, settingsOwner } from "./methods.ts";
import { overridesText } from "./overrides-text.ts";
import { budget } from "./settings.ts";

/** The share of the learning rate that is left at the end of the schedule. */
export const finalOf = (schedule: Recipe["schedule"]): number => (schedule as { final?: number }).final ?? 1;

/** The picture shows methods; the table also their variants, which differ in one option. */
export function convergencePicture(
  lines: readonly RecordedLine[],
  overrides: readonly string[] = [],
): string | undefined {
  const curves = curvesOf(lines).filter(({ method }) => settingsOwner(method) === method || overrides.length > 0);
  const timed = rates.filter((rate) => curves.some((curve) => curve.secondsAfter(rate, curve.points.at(-1)!.step)));
  const axes = [bySteps, byBytes, ...timed.map((rate) => bySeconds(rate, rateText(rate)))];
  const { on, subtitle } = overridesText(overrides);
  const title = `Validation loss of a small GPT${on}, ${workers} workers, ${seedsText(curves)}`;
  return lossCurves(curves, axes, { title, subtitle });
}

/** Rate, warm-up and β₂, where they were searched. */
export function settingsCells({ settings, atEdge }: Curve): string[] {
  const cell = (name: keyof Curve["settings"], text: (value: number) => string) => {
    const value = settings[name];
    return value === undefined ? "–" : `${text(value)}${atEdge.includes(name) ? " ‡" : ""}`;
  };
  return [
    cell("lr", (lr) => String(Number(lr.toPrecision(3)))),
    cell("warmup", (part) => `${Math.round(100 * part)} %`),
    cell("beta2", String),
  ];
}

export function convergenceReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const curves = curvesOf(lines);
  const { steps, data, optimizer, schedule } = readRecipe(recipe, []);
  const ratio = (curve: Curve, rate: string) => {
    const found = curve.toLoss(rate);
    return found?.ratio === undefined ? "–" : `**${found.ratio.toFixed(2)}**${found.oneSeed ? " *" : ""}`;
  };
  const last = (curve: Curve, rate: string) => curve.secondsAfter(rate, curve.points.at(-1)!.step);
  const rows = curves.map((curve) => {
    return [
      curve.method,
      ...settingsCells(curve),
      spreadText(curve.last, curve.seeds),
      spreadText(curve.ratio, curve.seeds),
      bytesText(curve.bytesPerStep),
      ...rates.flatMap((rate) => [last(curve, rate)?.toFixed(0) ?? "–", ratio(curve, rate)]),
    ];
  });
  const changes = curves.map(({ method }) => {
    const { changes, hook, lr } = methods[method]!;
    const words = changes.map((word) => `\`${word}\``).join(", ");
    const settings = typeof lr === "string" ? `; the settings of ${lr}` : "";
    return `- ${method}: ${hook ? `${sideOf(hook)}, ` : ""}${words}${settings}`;
  });
  const expected = expectationsTable(lines);
  const values = byCase(lines);
  const heads = rates.flatMap((rate) => [
    `s, ${rateText(rate)}`,
    `to the loss${(({ method }) => `, ÷ ${method}`)(fastestPeer(values, rate) ?? { method: "PyTorch" })}`,
  ]);
  return `# Every method on the same tokens

Written by \`./terse bench convergence --record\`. ${machine}. A small GPT (\`apps/bench/src/convergence/recipe.yaml\`)
on the TypeScript declarations of the installed packages, byte tokens, ${workers} workers, batch ${data.batchSize} × 64
on each, ${steps} steps, a cosine to ${finalOf(schedule)} of the learning rate, clipping at ${optimizer.clip}.
${seedsText(curves)}: each seed has its own weights and tokens, the same for every method. The mean over the seeds, and
in parentheses the least and the most; a ratio is taken with the same seed.

*The settings* of a method are the best of a search of up to ${budget} runs with the first seed, as many for every
method, PyTorch's too: the rate in steps of two, refined once by √2; the warm-up, 5, 10, 30 or 50 % of the run, the
longest that a recipe takes; for Adam's family β₂, 0.95, 0.99 or 0.999. A variant takes its method's. ‡: the best lies
at an edge of what was tried.

*Seconds*: the losses are those of real runs. The time of each kind of step (dense warm-up, compressed, without a
message) was measured with ${workers} processes on this machine, whose links the kernel limits (\`./terse netlab\`), as
the lesser of two runs' medians, and multiplied by the number of such steps. *To the loss*: the time in which the
fastest of PyTorch's sides (on Gloo, real runs) reaches the loss that ${reference} ends at, within
${((tolerance - 1) * 100).toFixed(1)} %, ÷ the time in which the method does; 1 and more is faster. A method that does
not reach it in ${steps} steps is given a run of twice as many, and one that is there before the end a run of half as
many, each with a schedule of its own and one seed (*). –: not reached, or not measured.

![Validation loss by steps, by bytes and by seconds on slow links.](convergence.svg)

${table(["method", "η", "warm-up", "β₂", "validation loss, nats per byte", `÷ ${reference}`, "a worker sends per step", ...heads], rows)}
${expected && `\nWhat is expected of them, the ratios of the losses with the same seed, and whether they show it: "as good" is at most 2 % above in the mean, "behind"\nand "better" hold with every seed, "a little" is at most 15 %, "breaks" more than 10 % with every seed.\n\n${expected}\n`}
What each method changes in the recipe:

${changes.join("\n")}

All lines, those of the searches too: [convergence.jsonl](convergence.jsonl). Recorded: ${when}.
`;
}

const sideOf = (hook: Hook): string => {
  const interval = intervalOf(hook);
  if (interval === undefined) return `PyTorch's DDP, hook ${hook}`;
  return `PyTorch's local SGD, the mean of the ranks' parameters every ${interval} steps`;
};
