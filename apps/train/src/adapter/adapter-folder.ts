/** A folder with an adapter: PEFT's, or a save of a run that trains one. */
import { join } from "node:path";
import {
  adapterConfigFile,
  adapterFile,
  CheckpointError,
  type Config,
  loadConfig,
  loadModel,
  misfits,
  openSafetensors,
} from "@terse/checkpoint";
import { Lora, type LoraOptions, loraOf, type Model, readPeftConfig } from "@terse/models";
import { OptionsError } from "@terse/options";
import { type DType, fromTypedArray, scope, type TypedArray } from "@terse/tensor";
import { type Base, findBase } from "./base.ts";

/** What a folder says of its adapter: JSON, so that one rank can tell the others. */
export interface DescribedAdapter {
  readonly folder: string;
  readonly options: LoraOptions;
  readonly base: Base;
}

/** `moved`: the folder of the base, where it is not where the adapter says. Throws `CheckpointError`. */
export async function describedAdapter(folder: string, moved?: string): Promise<DescribedAdapter> {
  const config = await loadConfig(folder, adapterConfigFile);
  const base = await findBase(folder, config, moved);
  try {
    return { folder, options: await optionsOfAdapter(folder, config), base };
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(`${join(folder, adapterConfigFile)}: ${error.lines.join("; ")}`);
  }
}

/** Throws `OptionsError` for an adapter that is not computed here. */
export async function optionsOfAdapter(folder: string, config: Config): Promise<LoraOptions> {
  await using file = await openSafetensors(join(folder, adapterFile));
  return readPeftConfig(config, file.tensors.keys());
}

/** Adds the adapter of a folder to its base, with random values. Throws `CheckpointError` where it does not fit. */
export function addDescribed(model: Model, { folder, options, base }: DescribedAdapter): void {
  try {
    new Lora(model, options);
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    throw new CheckpointError(
      `the adapter in ${folder} does not fit ${"folder" in base ? base.folder : "its base"}: ${error.lines.join("; ")}`,
    );
  }
}

/** Sets the weights that an adapter leaves as they are. Random ones have been drawn with the model. */
export async function loadBase(base: Base, model: Model): Promise<void> {
  const lora = loraOf(model)!;
  if ("folder" in base) await loadModel(base.folder, lora.frozenState(), lora.weightsOfBase);
}

/** Throws `CheckpointError` where the file of an adapter is of another one. Reads its header alone. */
export async function checkAdapter(folder: string, model: Model): Promise<void> {
  const [lora, path] = [loraOf(model)!, join(folder, adapterFile)];
  const found = await misfits(path, lora.parameters(), lora.namesInFiles);
  if (found !== "") throw new CheckpointError(`${path} does not fit its base with the adapter's options: ${found}`);
}

/** Sets an adapter from its file, with its base in place. Throws `CheckpointError` where that is of another one. */
export async function loadAdapter(folder: string, model: Model): Promise<void> {
  await checkAdapter(folder, model);
  const [lora, path] = [loraOf(model)!, join(folder, adapterFile)];
  await loadModel(path, lora.parameters(), lora.namesInFiles);
  await checkCopies(path, lora);
}

/** PEFT writes weights of the base again, where they may be others: they must be those of the base. */
async function checkCopies(path: string, lora: Lora): Promise<void> {
  await using file = await openSafetensors(path);
  for (const [name, parameter] of lora.copiesInFiles()) {
    if (parameter.requiresGrad || !file.tensors.has(name)) continue;
    const { data, dtype, shape } = await file.read(name);
    const isSame = scope(() => {
      const stored = fromTypedArray(data as TypedArray, shape, { dtype: dtype as DType });
      return (
        shape.join() === parameter.shape.join() &&
        stored.to(parameter.dtype).equal(parameter.detach().to({ device: "cpu" }))
      );
    });
    if (!isSame)
      throw new CheckpointError(
        `${path} has ${name} with other values than its base, which no adapter here changes so; name the module in modules_to_save when you train it with PEFT, or merge it there`,
      );
  }
}
