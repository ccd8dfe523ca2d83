/** `./terse train --dry-run`: prints what a recipe would need, and trains nothing. */
import { mayExist } from "@terse/checkpoint";
import { linkText, parseLink } from "@terse/collectives";
import { DataError, datasets } from "@terse/data";
import { OptionsError, print } from "@terse/options";
import { scope, withDevice } from "@terse/tensor";
import { checkAdapter } from "../adapter/adapter-folder.ts";
import { isAdapterFolder } from "../adapter/base.ts";
import { checkNewHead } from "../adapter/check-new-head.ts";
import type { TrainArguments } from "../arguments.ts";
import { buildModel } from "../build.ts";
import { amountText, bytesText } from "../format.ts";
import { inventoryLines } from "../inventory-lines.ts";
import { withOwnDataPath } from "../own-data-path.ts";
import { parametersText } from "../parameter-counts.ts";
import { methodName } from "../parameter-groups.ts";
import { type Recipe, remarksOn } from "../recipe.ts";
import { isSavedHere, recipeFor } from "../recipe-for.ts";
import { readInitialWeights } from "../saves/initial-weights.ts";
import { checkShapes, modelFolderOf } from "../saves/model-of-run.ts";
import { remarksAtStart } from "../saves/remarks-at-start.ts";
import { activationsOf } from "./activations.ts";
import { type MethodPlan, type Methods, methodsOf } from "./methods.ts";
import { type Plan, planOf, type Speed } from "./plan.ts";
import type { StepTime } from "./step-time.ts";

/** Prints what a run would cost. Resolves to the exit code. */
export async function dryRun(asked: TrainArguments): Promise<number> {
  const args = isSavedHere(asked) ? { ...asked, resume: asked.out!, initFrom: undefined } : asked;
  const weights = args.initFrom === undefined ? undefined : await readInitialWeights(args.initFrom, args.base);
  const recipe = withOwnDataPath(recipeFor(args, weights));
  const absent = absentData(recipe);
  if (absent !== undefined && args.overrides.some((override) => override.startsWith("data.path=")))
    throw new OptionsError([absent]);
  if (args.initFrom !== undefined) await checkWeights(args.initFrom, recipe, args.newHead);
  const link = args.link ?? args.emulateLink;
  const ranks = args.worldSize ?? args.nprocPerNode;
  const given = args.flops === undefined ? {} : { speed: { flops: args.flops, measured: false } };
  const parsed = link === undefined ? undefined : parseLink(link);
  const plan = await planOf(recipe, ranks, { ...(parsed && { link: parsed }), ...given });
  const activations = await activationsOf(plan.recipe);
  const methods = ranks === 1 ? [] : methodsText(await methodsOf(plan, ranks, args.nprocPerNode), activations);
  const known = args.resume === undefined ? remarksAtStart(recipe, { ...args, weights }) : remarksOn(recipe);
  const data = absent === undefined ? await dataLines(recipe) : [absent];
  const remarks = [...known, ...plan.remarks, ...data];
  const on = parsed === undefined ? "" : `, a link of ${linkText(parsed)} each`;
  print([...planText(plan, ranks, { on, activations }), ...methods, ...remarks]);
  return 0;
}

/** A recipe may be planned where its data is not: only a path on the command line must be there. */
function absentData({ data }: Recipe): string | undefined {
  const { path } = data as { path?: string };
  if (path === undefined || mayExist(path)) return undefined;
  return `data.path: there is no file or folder at ${path} on this machine; a run needs it`;
}

/**
 * The files that a run would read. Where a run would refuse them, a line says so, and the recipe is planned all the
 * same.
 */
async function dataLines({ data: { name, batchSize: _, ...options } }: Recipe): Promise<string[]> {
  try {
    return inventoryLines(await datasets[name].inventory?.(options));
  } catch (error) {
    if (error instanceof DataError) return [`data: ${error.message}`];
    throw error;
  }
}

/** Throws the error with which a run would refuse these weights. */
async function checkWeights(initFrom: string, recipe: Recipe, newHead = false): Promise<void> {
  const folder = await modelFolderOf(initFrom);
  await scope(async () => {
    const model = withDevice("meta", () => buildModel({ ...recipe, device: "cpu" }));
    if (isAdapterFolder(folder)) await checkAdapter(folder, model);
    else await checkShapes(folder, model, { newHead });
    if (newHead) checkNewHead(model);
  });
}

/** `activations` are bytes, where they are known; `on` names the link. */
export function planText(
  plan: Plan,
  ranks: number,
  { on = "", activations }: { on?: string; activations?: number | undefined } = {},
): string[] {
  const { recipe, memory, phases, rows, tokens } = plan;
  const roles = [...plan.byRole].map(([role, count]) => `${role} ${millions(count)}`).join(", ");
  const width = Math.max("optimizer state".length, ...phases.map((phase) => stepsText(phase).length));
  const each = (label: string, text: string) => `  ${label.padEnd(width)}  ${text}`;
  return [
    `dry run: ${methodName(recipe)} on ${amountText(ranks, "rank")}${on}`,
    `model ${recipe.model.name}, ${parametersText(plan, recipe.adapter?.name)} (${roles}); ${recipe.steps} steps of ${count(rows)} rows${tokens === undefined ? "" : `, ${count(tokens)} tokens`}`,
    `memory of each rank (rank 0's)${activations === undefined ? ", without activations" : ""}`,
    each("parameters", bytesText(memory.parameters)),
    ...(memory.frozen === 0 ? [] : [each("frozen weights", bytesText(memory.frozen))]),
    each("gradients", bytesText(memory.gradients)),
    each("optimizer state", bytesText(memory.state)),
    ...(memory.average === 0 ? [] : [each("average", bytesText(memory.average))]),
    each("messages", memory.exchange === 0 ? "0 B" : `at most ${bytesText(memory.exchange)}`),
    ...(activations === undefined ? [] : [each("activations", `about ${bytesText(activations)}`)]),
    ...(ranks === 1
      ? ["sent: nothing, one rank"]
      : [
          `sent by each rank (rank 0) in a step; 32-bit data parallel would send ${bytesText(plan.denseBytes)}`,
          ...phases.map((phase) => each(stepsText(phase), bytesText(Math.round(phase.bytes)))),
          ...roundsText(plan, each),
        ]),
    ...timeText(plan, each),
  ];
}

/** With local steps: what a step costs in the mean of a round. */
function roundsText(
  { recipe: { local, steps }, phases, trained }: Plan,
  each: (label: string, text: string) => string,
): string[] {
  if (!local) return [];
  const all = phases.reduce((sum, phase) => sum + phase.steps * phase.bytes, 0);
  const mean = all / steps;
  return [
    each("mean", `${bytesText(Math.round(mean))}, ${Number(((8 * mean) / trained).toPrecision(3))} bits a parameter`),
  ];
}

/** What would hide a round on this link: how many steps it takes to travel. */
function delayText({ phases, recipe: { local } }: Plan): string {
  const { syncEvery, fragments, delay } = local!;
  const every = syncEvery / fragments;
  const [{ computing, messages }] = phases.map(({ time }) => time!).toSorted((a, b) => b.messages - a.messages) as [
    StepTime,
  ];
  const needed = Math.ceil(messages / computing);
  const round = `a round leaves every ${every} steps, and takes ${seconds(messages)}`;
  if (needed <= delay) return `${round}: local.delay, ${delay}, hides it`;
  if (needed < every) return `${round}: local.delay ${needed} would hide it`;
  return `${round}, more than the ${every} steps until the next one: no local.delay can hide it`;
}

function timeText(plan: Plan, each: (label: string, text: string) => string): string[] {
  const { phases, speed, buckets, obstacle, tokens, recipe } = plan;
  if (speed === undefined) return ["time: give --link, such as --link 1gbit,50us, and a step's time is predicted"];
  const leave = recipe.local
    ? delayText(plan)
    : obstacle === undefined
      ? `messages leave in ${amountText(buckets, "bucket")} while backward runs`
      : `messages leave after backward: ${obstacle}`;
  return [
    `time of a step, predicted: messages by the link's numbers; ${recipe.adapter ? "4 operations for each frozen weight, 6 for each other," : "6 operations for each weight"} and ${tokens === undefined ? "place" : "token"} at ${speedText(speed)}`,
    ...phases.map((phase) => {
      const { computing, messages, exposed } = phase.time!;
      const parts = `forward and backward ${seconds(computing)}; messages ${seconds(messages)}, of which ${seconds(exposed)} ${recipe.local ? "to wait for" : "after backward"}`;
      return each(stepsText(phase), `${seconds(computing + exposed)}: ${parts}`);
    }),
    leave,
  ];
}

/** A row for each method, and a line for each that is left out. All have the same activations. */
export function methodsText({ own, others, leftOut }: Methods, activations = 0): string[] {
  const rows = [own, ...others];
  const width = Math.max(...rows.map(({ name }) => name.length));
  const cells = ({ memory, bytes, time }: MethodPlan) => [
    bytesText(memory + activations),
    bytesText(Math.round(bytes)),
    ...(time ? [seconds(time.step), seconds(time.exposed)] : []),
  ];
  const headings = ["memory", "sent", ...(own.time ? ["step", "waiting"] : [])];
  const line = (name: string, cells: readonly string[]) =>
    `  ${name.padEnd(width)}${cells.map((cell) => cell.padStart(11)).join("")}`;
  return [
    `other methods after their warm-ups: memory and bytes of a step, as above${own.time ? "; predicted times without codecs" : ""}`,
    line("", headings),
    ...rows.map((row) => line(row.name, cells(row))),
    ...leftOut,
  ];
}

/** "steps 0 to 99", or "40 steps in 3 to 99" where others come between. */
function stepsText({ from, to, steps }: Plan["phases"][number]): string {
  if (steps < to - from + 1) return `${steps} steps in ${from} to ${to}`;
  return steps === 1 ? `step ${from}` : `steps ${from} to ${to}`;
}

const speedText = ({ flops, measured }: Speed) =>
  `${Number((flops / 1e9).toPrecision(3)).toLocaleString("en-US")} Gflop/s, ${measured ? "measured here" : "as given"}`;

const millions = (n: number) => `${(n / 1e6).toFixed(2)} M`;
const count = (n: number) => n.toLocaleString("en-US");

function seconds(value: number): string {
  if (value >= 1) return `${Number(value.toPrecision(3)).toLocaleString("en-US")} s`;
  return value >= 1e-3 || value === 0
    ? `${Number((1e3 * value).toPrecision(3))} ms`
    : `${Number((1e6 * value).toPrecision(3))} µs`;
}
