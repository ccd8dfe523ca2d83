/**
 * The folder of a run:
 *
 *   recipe.json        the recipe with every default filled in
 *   metrics.jsonl      one line per logged step
 *   config.json        the model's shape           model.safetensors   its weights, PyTorch's names
 *   state.json         step and data position      state-rank-R.safetensors   each rank's optimizer state
 *
 * Everything but the metrics appears by rename, the state last, so a save that was cut short is never taken for a whole one.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import {
  atomicWriteText,
  CheckpointError,
  loadConfig,
  loadModel,
  readSafetensors,
  saveModel,
  writeSafetensors,
} from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { TextData, TextDataState } from "@terse/data";
import { Gpt, type GptOptions } from "@terse/models";
import type { Optimizer } from "@terse/optimizers";
import { fromTypedArray, noGrad } from "@terse/tensor";
import type { Arguments } from "./arguments.ts";
import { embedded, type Recipe } from "./recipe.ts";

/** Where runs go that were not told where. */
const runs = "runs";

interface Parts {
  model: Gpt;
  data: TextData;
  optimizer: Optimizer;
}

interface State {
  step: number;
  ranks: number;
  data: TextDataState;
}

export class Run {
  readonly folder: string;
  /** Steps already taken. */
  readonly step: number;
  readonly #group: Group;
  readonly #parts: Parts;

  constructor(folder: string, step: number, group: Group, parts: Parts) {
    this.folder = folder;
    this.step = step;
    this.#group = group;
    this.#parts = parts;
  }

  path(name: string): string {
    return join(this.folder, name);
  }

  files(): string[] {
    return readdirSync(this.folder).sort();
  }

  /** Every rank its own state, rank 0 the model; the ranks wait for each other before the state counts. */
  async save(step: number): Promise<void> {
    const { model, data, optimizer } = this.#parts;
    await writeSafetensors(this.path(`state-rank-${this.#group.rank}.safetensors`), optimizer.state(), {
      step: String(step),
    });
    if (this.#group.rank === 0)
      await saveModel(this.folder, model.namedParameters(), { model_type: "gpt", ...model.shape });
    await this.#group.barrier();
    const state: State = { step, ranks: this.#group.size, data: data.state() };
    if (this.#group.rank === 0)
      await atomicWriteText(this.path("state.json"), `${JSON.stringify(state, undefined, 2)}\n`);
  }
}

/** Makes the run's folder, or goes on in the one of `--resume`: weights, optimizer, data position, all as they were saved. */
export async function openRun(
  recipe: Recipe,
  group: Group,
  parts: Parts,
  args: Pick<Arguments, "recipe" | "out" | "resume">,
): Promise<Run> {
  if (args.resume !== undefined) return resumeRun(resolve(args.resume), group, parts);
  const folder = await agreeOn(group, resolve(args.out ?? join(runs, freshName(args.recipe))));
  if (group.rank === 0) {
    makeFolder(folder);
    await atomicWriteText(join(folder, "recipe.json"), `${JSON.stringify(recipe, undefined, 2)}\n`);
  }
  await group.barrier();
  return new Run(folder, 0, group, parts);
}

async function resumeRun(folder: string, group: Group, parts: Parts): Promise<Run> {
  const state = readState(folder);
  if (state.ranks !== group.size)
    throw new CheckpointError(
      `${folder} was saved by ${state.ranks} ranks, whose momenta differ, and this run has ${group.size}: use --nproc-per-node ${state.ranks}`,
    );
  const { model, data, optimizer } = parts;
  await loadModel(folder, model.namedParameters());
  const path = join(folder, `state-rank-${group.rank}.safetensors`);
  const saved = await readSafetensors(path);
  for (const [name, tensor] of optimizer.state()) {
    const stored = saved.get(name);
    if (!stored || stored.data.length !== tensor.length)
      throw new CheckpointError(
        `${path} has no ${name} of ${tensor.length} elements: it belongs to another optimizer or model`,
      );
    using values = fromTypedArray(stored.data, tensor.shape);
    noGrad(() => tensor.copy_(values));
  }
  data.restore(state.data);
  optimizer.steps = state.step;
  return new Run(folder, state.step, group, parts);
}

function readState(folder: string): State {
  const path = join(folder, "state.json");
  if (!existsSync(path))
    throw new CheckpointError(
      `${folder} holds no saved run (${path} is missing); name the folder of a run that has been saved`,
    );
  try {
    return JSON.parse(readFileSync(path, "utf8")) as State;
  } catch {
    throw new CheckpointError(`${path} is no JSON; resume another run`);
  }
}

/** The model of a run, for those who only want to use it. */
export async function loadModelOf(folder: string): Promise<Gpt> {
  const { model_type, ...shape } = await loadConfig(folder);
  if (model_type !== "gpt")
    throw new CheckpointError(
      `${join(folder, "config.json")} describes a ${String(model_type)}, and only gpt is known`,
    );
  const model = new Gpt(shape as GptOptions);
  await loadModel(folder, model.namedParameters());
  return model;
}

/** The folder of the run that was saved last. */
export function newestRun(): string {
  const folders = existsSync(runs) ? readdirSync(runs).map((name) => join(runs, name)) : [];
  const saved = folders.filter((folder) => existsSync(join(folder, "model.safetensors")));
  const time = (folder: string) => statSync(join(folder, "model.safetensors")).mtimeMs;
  const newest = saved.sort((a, b) => time(b) - time(a))[0];
  if (!newest)
    throw new CheckpointError(
      `there is no saved run in ${resolve(runs)}; train one with ./terse train, or name a run's folder`,
    );
  return newest;
}

function freshName(recipe: string | undefined): string {
  const name = basename(recipe ?? embedded.pathname).replace(/\.ya?ml$/, "");
  const time = new Date().toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "");
  return `${name}-${time}`;
}

function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw new CheckpointError(
      `the run's folder ${folder} cannot be made (${(error as NodeJS.ErrnoException).code}); choose another with --out`,
    );
  }
  if (existsSync(join(folder, "state.json")))
    throw new CheckpointError(
      `${folder} already holds a run; go on with it by --resume ${folder}, or choose another --out`,
    );
}

/** Rank 0's text, on every rank. */
async function agreeOn(group: Group, text: string): Promise<string> {
  const bytes = new Uint8Array(4096);
  new TextEncoder().encodeInto(text, bytes);
  await group.broadcast(bytes, 0);
  return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
}
