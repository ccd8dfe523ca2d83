/** Writes docs/results/recipe.md and its picture: losses of the default recipe with few bits and with 32. */
import { bytesText } from "@terse/train/format";
import { defaultRecipe, readRecipe } from "@terse/train/recipe";
import { curvesOf, seedsText, spreadText } from "../convergence/curves.ts";
import { byBytes, bySteps, lossCurves } from "../convergence/loss-curves.ts";
import { overridesText } from "../convergence/overrides-text.ts";
import { finalOf } from "../convergence/report.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { methods, workers } from "./recipe.ts";

const reference = "adamw";

export function recipePicture(lines: readonly RecordedLine[], overrides: readonly string[] = []): string | undefined {
  const curves = curvesOf(lines, reference);
  const { on, subtitle } = overridesText(overrides);
  const title = `Validation loss of the default recipe${on}, ${workers} workers, ${seedsText(curves)}: the mean, in a band from the least to the most`;
  return lossCurves(curves, [bySteps, byBytes], { title, subtitle });
}

export function recipeReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const curves = curvesOf(lines, reference);
  const dense = curves.find(({ method }) => method === reference);
  const recipe = readRecipe(defaultRecipe, []);
  const { steps, data, optimizer, schedule } = recipe;
  const rows = curves.map(({ method, seeds, last, ratio, bytesPerStep }) => {
    const part = dense ? dense.bytesPerStep / bytesPerStep : 1;
    const cells = [method, spreadText(last, seeds), spreadText(ratio, seeds), bytesText(bytesPerStep)];
    return `| ${[...cells, part < 1.05 ? "1" : `1/${Math.round(part)}`].join(" | ")} |`;
  });
  const changes = Object.entries(methods).map(([method, of]) => {
    const words = of.map((word) => `\`${word}\``);
    return `- ${method}: ${words.join(", ") || "the recipe as it is"}`;
  });
  return `# The default recipe with few bits and with 32: losses

Written by \`./terse bench recipe --record\`. ${machine}. The default recipe of \`./terse train\`, with ${workers} workers in one process:
the small GPT on the TypeScript declarations of the installed packages, byte tokens, batch ${data.batchSize} × 128 on each worker, ${steps} steps, η ${optimizer.lr}
with ${schedule.warmup} steps of warm-up and a cosine to ${finalOf(schedule)} of it, λ ${(optimizer as { weightDecay?: number }).weightDecay}, clipping at ${optimizer.clip}, \`clipBy: ${optimizer.clipBy}\`. ${seedsText(curves)}: each seed has its own
weights and tokens, the same for every method. The mean over the seeds, and in parentheses the least and the most; a ratio is taken with the
same seed. Losses do not depend on the machine's speed, but their third digit does on its processor.

![Validation loss by steps and by bytes sent.](recipe.svg)

| method | validation loss, nats per byte | ÷ ${reference} | a worker sends per step | ÷ ${reference} |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

What each method changes in the recipe:

${changes.join("\n")}

All lines: [recipe.jsonl](recipe.jsonl). Recorded: ${when}.
`;
}
