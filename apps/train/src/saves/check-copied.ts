import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  adapterConfigFile,
  adapterFile,
  CheckpointError,
  type Config,
  configFile,
  loadConfig,
  misfits,
  openWeights,
} from "@terse/checkpoint";
import { isHeadless, type Model, type ModelName, models, modelsFor, withoutHead } from "@terse/models";
import { OptionsError } from "@terse/options";
import { scope, withDevice } from "@terse/tensor";
import { addDescribed, checkAdapter, optionsOfAdapter } from "../adapter/adapter-folder.ts";
import { isAdapterFolder } from "../adapter/base.ts";
import { checkSize } from "./model-of-run.ts";

/**
 * Throws `CheckpointError` where files that are copied as they are would not be the model or the adapter that their
 * config describes. Reads headers alone. Of a model that is not known here it says nothing, nor of an adapter whose
 * base is not there.
 */
export async function checkCopied(folder: string): Promise<void> {
  const adapter = isAdapterFolder(folder) ? await loadConfig(folder, adapterConfigFile) : undefined;
  await (await openWeights(adapter ? join(folder, adapterFile) : folder))[Symbol.asyncDispose](); // throws
  const described = adapter ? configOfBase(folder, adapter) : folder;
  if (described === undefined) return;
  const config = await loadConfig(described);
  await scope(async () => {
    const known = await ifKnown(() => {
      const [name] = modelsFor(config) as [ModelName];
      return { name, options: models[name].read(config) };
    });
    if (!known) return;
    const { name, options } = known;
    if (!adapter) await checkSize(folder, name, options);
    const model = withDevice("meta", () => models[name].restore(options));
    if (adapter) return checkCopiedAdapter(folder, model, adapter);
    const found = await misfits(folder, model.stateDict(), isHeadless(config) ? withoutHead(model) : model);
    if (found !== "")
      throw new CheckpointError(
        `the weights in ${folder} are not those of the model that its ${configFile} describes: ${found}; use a whole copy`,
      );
  });
}

/** The folder with the config.json of an adapter's model: the adapter's own, or its base. */
function configOfBase(folder: string, { base_model_name_or_path: base }: Config): string | undefined {
  const folders = [folder, ...(typeof base === "string" ? [base] : [])];
  return folders.find((each) => existsSync(join(each, configFile)));
}

async function checkCopiedAdapter(folder: string, model: Model, config: Config): Promise<void> {
  const options = await ifKnown(() => optionsOfAdapter(folder, config));
  if (!options) return;
  const base = { folder: String(config["base_model_name_or_path"]) };
  withDevice("meta", () => addDescribed(model, { folder, options, base }));
  await checkAdapter(folder, model);
}

async function ifKnown<T>(read: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await read();
  } catch (error) {
    if (!(error instanceof OptionsError)) throw error;
    return undefined;
  }
}
