/**
 * An adapter in the layout of PEFT: a folder with adapter_config.json and adapter_model.safetensors, and in ours also
 * the config.json of the whole model.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { type Config, configFile } from "./config-file.ts";
import type { FileRecord } from "./file-record.ts";
import { makeFolder } from "./make-folder.ts";
import { type Tensors, writeSafetensors } from "./safetensors.ts";
import { adapterFile, writeJson } from "./weights.ts";

/** The name of the file that describes an adapter, as in PEFT's layout. */
export const adapterConfigFile = "adapter_config.json";

/** Whether a folder has an adapter. */
export const hasAdapter = (folder: string): boolean => existsSync(join(folder, adapterConfigFile));

/** What the files of an adapter say. */
export interface AdapterFiles {
  readonly tensors: Tensors;
  readonly config: Config; // of the whole model
  readonly adapterConfig: Config;
  readonly metadata: Readonly<Record<string, string>>; // of the weights' file
}

/** Writes the files of an adapter, the weights last. Resolves to a record of each. Throws `CheckpointError`. */
export async function saveAdapter(
  folder: string,
  { tensors, config, adapterConfig, metadata }: AdapterFiles,
): Promise<FileRecord[]> {
  makeFolder(folder);
  return [
    await writeJson(folder, configFile, config),
    await writeJson(folder, adapterConfigFile, adapterConfig),
    await writeSafetensors(join(folder, adapterFile), tensors, { format: "pt", ...metadata }),
  ];
}
