/** Writes docs/results/convergence.md: losses of all methods, over the seeds. */
import { bytesText } from "@terse/train/format";
import { defaultRecipe, readRecipe } from "@terse/train/recipe";
import type { Provenance, RecordedLine } from "../recording.ts";
import { methods, weightDecayOf, workers } from "./convergence.ts";
import { curvesOf, reference, type Spread, seedsText } from "./curves.ts";

export function convergenceReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const curves = curvesOf(lines);
  const dense = curves.find(({ method }) => method === reference);
  const recipe = readRecipe(defaultRecipe, []);
  const { steps, data, optimizer, schedule } = recipe;
  const spread = ({ mean, least, most }: Spread, seeds: number) =>
    seeds === 1 ? mean.toFixed(3) : `${mean.toFixed(3)} (${least.toFixed(3)} to ${most.toFixed(3)})`;
  const rows = curves.map(({ method, seeds, last, ratio, bytesPerStep }) => {
    const part = dense ? dense.bytesPerStep / bytesPerStep : 1;
    const cells = [method, spread(last, seeds), spread(ratio, seeds), bytesText(bytesPerStep)];
    return `| ${[...cells, part < 1.05 ? "1" : `1/${Math.round(part)}`].join(" | ")} |`;
  });
  const changes = Object.entries(methods).map(
    ([method, of]) =>
      `- ${method}: ${
        of(recipe)
          .map((word) => `\`${word}\``)
          .join(", ") || "the recipe as it is"
      }`,
  );
  return `# One bit compared with 32: losses

Written by \`./terse bench convergence --record\`. ${machine}. The default recipe of \`./terse train\`, with ${workers} workers in one process:
the small GPT on the TypeScript declarations of the installed packages, byte tokens, batch ${data.batchSize} × 128 on each worker, ${steps} steps, η ${optimizer.lr}
with ${schedule.warmup} steps of warm-up and a cosine to ${schedule.final} of it, λ ${weightDecayOf(recipe)}, clipping at ${optimizer.clip}, \`clipBy: ${optimizer.clipBy}\`. ${seedsText(curves)}: each seed has its own
weights and tokens, the same for every method. The mean over the seeds, and in parentheses the least and the most; a ratio is taken with the
same seed. Losses do not depend on the machine's speed, but their third digit does on its processor.

![Validation loss by steps and by bytes sent.](convergence.svg)

| method | validation loss, nats per byte | ÷ 32-bit Lion | a worker sends per step | ÷ 32-bit Lion |
| --- | --- | --- | --- | --- |
${rows.join("\n")}

What each method changes in the recipe:

${changes.join("\n")}

All lines: [convergence.jsonl](convergence.jsonl). Recorded: ${when}.
`;
}
