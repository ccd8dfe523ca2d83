/** Writes docs/results/recipe.md and its picture: losses of gpt-small with few bits and with 32. */
import { bytesText } from "@terse/train/format";
import { readRecipe } from "@terse/train/recipe";
import { type Curve, curvesOf, seedsText, spreadText } from "../convergence/curves.ts";
import { byBytes, bySteps, lossCurves } from "../convergence/loss-curves.ts";
import { overridesText } from "../convergence/overrides-text.ts";
import { finalOf, settingsCells } from "../convergence/report.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { table } from "../table.ts";
import { base, budget, longerSuffix, methods, workers } from "./recipe.ts";

const reference = "adamw";
const isLonger = ({ method }: Pick<Curve, "method">) => method.endsWith(longerSuffix);

export function recipePicture(lines: readonly RecordedLine[], overrides: readonly string[] = []): string | undefined {
  const curves = curvesOf(lines, reference).filter((curve) => !isLonger(curve));
  const { on, subtitle } = overridesText(overrides);
  const title = `Validation loss of gpt-small${on}, ${workers} workers, ${seedsText(curves)}: the mean, in a band from the least to the most`;
  return lossCurves(curves, [bySteps, byBytes], { title, subtitle });
}

export function recipeReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const curves = curvesOf(lines, reference).filter((curve) => !isLonger(curve));
  const longer = curvesOf(lines, `${reference}${longerSuffix}`).filter(isLonger);
  const recipe = readRecipe(base, []);
  const { steps, data, optimizer, schedule } = recipe;
  const changes = Object.entries(methods).map(([method, { recipe, changes, ofSteps, lr }]) => {
    const words = [...changes, ...(ofSteps?.(steps) ?? [])].map((word) => `\`${word}\``);
    const from = typeof lr === "string" ? `the settings of ${lr}` : `its search begins at η ${lr}`;
    const named = recipe ? [`${recipe}.yaml`] : [];
    const changed = [...named, ...words].join(", ") || `${base}.yaml as it is`;
    return `- ${method}: ${changed}; ${from}`;
  });
  return `# gpt-small with few bits and with 32: losses

Written by \`./terse bench recipe --record\`. ${machine}.
The recipe gpt-small of \`./terse train\`, with ${workers} workers in one process: the small GPT on the TypeScript
declarations of the installed packages, byte tokens, batch ${data.batchSize} × 128 on each worker, ${steps} steps, a cosine to ${finalOf(schedule)}
of the rate, λ ${(optimizer as { weightDecay?: number }).weightDecay}, clipping at ${optimizer.clip}, \`clipBy: ${optimizer.clipBy}\`. ${seedsText(curves)}: each seed has its own weights
and tokens, the same for every method. The mean over the seeds, and in parentheses the least and the most; a ratio is
taken with the same seed. Losses do not depend on the machine's speed, but their third digit does on its processor.

*The settings* of a method are the best of a search of up to ${budget} runs with the first seed: the rate in steps of
two, refined once by √2, and the warm-up as a part of the run. ‡: the best lies at an edge of what was tried. Only
searched methods are recorded.

![Validation loss by steps and by bytes sent.](recipe.svg)

${tableOf(curves, reference)}
${longer.length > 0 ? `\nThree times as many steps, two seeds, at the settings found for ${steps}:\n\n${tableOf(longer, `${reference}${longerSuffix}`)}\n` : ""}
What each method changes in the recipe:

${changes.join("\n")}

All lines: [recipe.jsonl](recipe.jsonl). Recorded: ${when}.
`;
}

function tableOf(curves: readonly Curve[], reference: string): string {
  const dense = curves.find(({ method }) => method === reference);
  const rows = curves.map((curve) => {
    const { method, seeds, last, ratio, bytesPerStep } = curve;
    const part = dense ? dense.bytesPerStep / bytesPerStep : 1;
    const settings = settingsCells(curve).slice(0, 2);
    const cells = [method, ...settings, spreadText(last, seeds), spreadText(ratio, seeds), bytesText(bytesPerStep)];
    return [...cells, part < 1.05 ? "1" : `1/${Math.round(part)}`];
  });
  const over = `÷ ${reference}`;
  const head = ["method", "η", "warm-up", "validation loss, nats per byte", over, "a worker sends per step", over];
  return table(head, rows);
}
