import { join } from "node:path";
import { CheckpointError } from "./checkpoint-error.ts";
import { isObject } from "./json.ts";
import { readSmallText } from "./regular-file.ts";

/** The content of a config.json. */
export type Config = Readonly<Record<string, unknown>>;

/** The name of the file that describes a model, as in Hugging Face's layout. */
export const configFile = "config.json";
const mostConfigBytes = 1 << 24; // the names of ImageNet-21k's classes, twice, have 2²¹

/** Reads the config.json of a model's folder, or another file of that kind. Throws `CheckpointError`. */
export async function loadConfig(folder: string, name: string = configFile): Promise<Config> {
  const path = join(folder, name);
  const text = readSmallText(path, mostConfigBytes);
  let why = "";
  try {
    const config: unknown = JSON.parse(text);
    if (isObject(config)) return config;
  } catch (error) {
    why = ` (${(error as Error).message})`; // such as Python's Infinity, and where it is
  }
  throw new CheckpointError(`${path} is not a JSON object${why}; correct it, or copy it again.`);
}
