/**
 * `./terse eval RUN`: the loss of a run's save, or of a folder with weights, on held-out data. One rank, or several
 * that share the batches; the numbers are the same, bit for bit.
 */
import { endWithParent, type Group, joinWorld } from "@terse/collectives";
import { DataError } from "@terse/data";
import { continuesText } from "@terse/models";
import { print } from "@terse/options";
import { manualSeed } from "@terse/tensor";
import { buildData } from "../build.ts";
import { ProgressBar } from "../data/progress-bar.ts";
import { openDeviceOf } from "../device.ts";
import { endOthers } from "../end-others.ts";
import { evaluate } from "../evaluate.ts";
import { amountText, durationText } from "../format.ts";
import { inventoryLines } from "../inventory-lines.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import { forwardIn } from "../precision.ts";
import { checkSameData } from "../same-data.ts";
import { checkSameRecipe } from "../same-recipe.ts";
import { loadDescribedOn } from "../saves/load-on.ts";
import { checkClassNames } from "../saves/meanings.ts";
import { restoredModel } from "../saves/model-of-run.ts";
import { onEveryRank } from "../saves/on-every-rank.ts";
import { useSharedCores } from "../share-cores.ts";
import { skippedSamples, skippedText } from "../skipped-samples.ts";
import { hasLauncher } from "../to-launcher.ts";
import { checkFits } from "./check-fits.ts";
import type { EvalArguments } from "./eval-arguments.ts";
import { holdsOutAll, readSubject } from "./subject.ts";

/** One rank of an evaluation. Resolves to the exit code. */
export async function runEval(args: EvalArguments): Promise<number> {
  if (hasLauncher()) endWithParent();
  const { deadline, outage, emulateLink, engine } = args;
  const options = { deadlineSeconds: deadline, outageSeconds: outage, emulateLink, engine };
  await using world = await joinWorld(options);
  try {
    const found = await evaluation(args, world);
    if (world.rank === 0) print(args.json ? JSON.stringify(found) : linesOf(found));
    return 0;
  } catch (error) {
    await endOthers(world, error);
    throw error;
  }
}

/** What `--json` prints. */
export interface Evaluation {
  readonly model: string; // the folder of its weights
  readonly data: string;
  readonly ranks: number;
  readonly rows: number; // that were evaluated
  readonly heldOutRows: number;
  readonly metrics: Readonly<Record<string, number>>;
  readonly units: Readonly<Record<string, string>>;
  readonly seconds: number;
}

/** All ranks resolve to the same metrics. */
export async function evaluation(args: EvalArguments, group: Group): Promise<Evaluation> {
  const began = performance.now();
  const say = (text: string) => void (group.rank === 0 && print(text, process.stderr));
  await checkSameRecipe({ overrides: args.overrides }, group);
  const [read] = await onEveryRank(group, () => (group.rank === 0 ? readSubject(args) : null));
  const subject = read!;
  const recipe = subject.isGiven ? subject.recipe : withOwnDataPath(subject.recipe);
  const device = openDeviceOf(recipe);
  await useSharedCores(group);
  manualSeed(0);
  const onHost = restoredModel(subject.model);
  const model = device === "cpu" ? onHost : onHost.to({ device });
  checkFits(subject.model, model, recipe);
  await loadDescribedOn(0, subject.folder, subject.model, model, group, args.base);
  const holdOutAll = holdsOutAll(subject, args.overrides);
  await using data = await buildData(recipe, model, group, { holdOutAll });
  checkClassNames(subject.model.config, data);
  await checkSameData(data, group);
  const { validationSamples } = data;
  if (validationSamples === 0)
    throw new DataError(
      `${data.source} has nothing that is held out; give a larger data.validationFraction, or other data, --data PATH`,
    );
  const found = inventoryLines(data.inventory, holdOutAll ? "all" : "share");
  for (const line of [...found, ...(data.remarks ?? []), ...subject.remarks]) say(line);
  if (!subject.isGiven && subject.fingerprint !== undefined && data.fingerprint !== subject.fingerprint)
    say(`the data is not that which the run had, or is read with other options: ${data.source}`);
  const metrics = await evaluated();
  const skipped = skippedText(await skippedSamples(data, group), data);
  if (skipped) say(`skipped: ${skipped}`);
  const { windows } = recipe.evaluate;
  const units = model.metricUnits(data.unit);
  const isText = continuesText(model);
  return {
    model: subject.folder,
    data: data.source,
    ranks: group.size,
    rows: windows === "all" ? validationSamples : Math.min(windows, validationSamples),
    heldOutRows: validationSamples,
    metrics: { ...metrics, ...(isText && { perplexity: Math.exp(metrics["loss"]!) }) },
    units: { ...units, ...(isText && { perplexity: `per ${data.unit}` }) },
    seconds: (performance.now() - began) / 1000,
  };

  async function evaluated() {
    using bar = group.rank === 0 ? new ProgressBar("evaluation", (n) => amountText(n, "batch")) : undefined;
    return evaluate(model, data, recipe.evaluate.windows, group, {
      forward: forwardIn(recipe),
      progress: (done, of) => bar?.at(done, of),
    });
  }
}

function linesOf({ model, data, ranks, rows, heldOutRows, metrics, units, seconds }: Evaluation): string[] {
  const amount =
    rows === heldOutRows
      ? amountText(rows, "row")
      : `${rows.toLocaleString("en-US")} of ${amountText(heldOutRows, "row")}`;
  return [
    `model ${model}; data ${data}, ${amount} held out; ${amountText(ranks, "rank")}, ${durationText(seconds)}`,
    ...Object.entries(metrics).map(([name, value]) => `${name}: ${value.toFixed(4)} ${units[name]}`),
  ];
}
