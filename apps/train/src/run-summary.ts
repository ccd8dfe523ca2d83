import type { Group } from "@terse/collectives";
import { datasets } from "@terse/data";
import { continuesText } from "@terse/models";
import type { Validated } from "./best-so-far.ts";
import { emulatedLinkText } from "./emulated-link-text.ts";
import { bytesText, durationText } from "./format.ts";
import type { Parts } from "./parts.ts";
import type { Recipe } from "./recipe.ts";
import { continueText } from "./sample.ts";
import type { Run } from "./saves/run.ts";
import { skippedText } from "./skipped-samples.ts";
import { ofAverage } from "./weight-average.ts";

interface Measured {
  readonly step: number;
  readonly seconds: number;
  /** A mean over the steps; undefined where there was none. */
  readonly bytesSent: number | undefined;
  /** Metrics by name. */
  readonly validation: {
    readonly first: Readonly<Record<string, number>>;
    readonly last: Readonly<Record<string, number>>;
    readonly best: Validated["best"]; // where the recipe looks at it
  };
  readonly skipped: readonly string[];
}

/** The end of a run: its last metrics, its cost, a sample of the model's text, and the folder of its files. */
export async function runSummary(
  recipe: Recipe,
  group: Group,
  { model, data, optimizer }: Parts,
  run: Run,
  { step, seconds, bytesSent = optimizer.bytesSent(), validation: { first, last, best }, skipped }: Measured,
): Promise<Record<string, string>> {
  const own = model.metricUnits(data.unit);
  const units = { ...own, ...ofAverage(own) };
  const validation = Object.entries(last).map(([name, value]) => [
    `validation ${name}`,
    `${first[name]!.toFixed(3)} → ${value.toFixed(3)} ${units[name]}`,
  ]);
  const dense = optimizer.denseBytes;
  const link = emulatedLinkText(group);
  return {
    ...Object.fromEntries(validation),
    ...(best && { "best validation": `${best.loss.toFixed(3)} after ${best.step} steps` }),
    "sent per step":
      group.size === 1
        ? "nothing: one rank"
        : `${bytesText(bytesSent)} a rank; gradients in 32 bits would be ${bytesText(dense)} (${(dense / bytesSent).toFixed(1)} ×)`,
    time: `${durationText(seconds)}${link ? ` on an emulated link, ${link}` : ""}`,
    ...(skipped.length > 0 && { skipped: skippedText(skipped, data)! }),
    run: run.folder,
    ...(await writtenSample(recipe, { model, data }, run, step)),
  };
}

/** A text that the model writes, where it can. */
async function writtenSample(
  recipe: Recipe,
  { model, data }: Pick<Parts, "model" | "data">,
  run: Run,
  step: number,
): Promise<Record<string, string>> {
  const { bytes: length, ...sampling } = recipe.sample;
  if (length === 0 || data.prompt === undefined || !continuesText(model)) return {};
  const tokenizer = await datasets[recipe.data.name].tokenizer?.(recipe.data);
  if (!tokenizer) return {};
  const { prompt, ends = [] } = data;
  const text = await continueText(model, tokenizer, prompt, { ...sampling, length, ends, seed: recipe.seed });
  run.log({ step, "sample/prompt": data.prompt, "sample/text": text });
  return { [`sample after ${JSON.stringify(data.prompt)}`]: text };
}
