/** `./terse export RUN`: the model of a run alone, as a folder that transformers, safetensors and `--init-from` open. */
import { copyFileSync, readdirSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { CheckpointError, configFile, makeFolder } from "@terse/checkpoint";
import { OptionsError, parseArguments } from "@terse/options";
import { modelFolderOf, newestRun } from "../saves/model-of-run.ts";

/** The files of a model in Hugging Face's layout, among those of a save. */
const ofModel = (name: string) =>
  name === configFile || /^(tokenizer.*\.json|model.*\.safetensors(\.index\.json)?)$/.test(name);

export async function exportCommand(argv: readonly string[]): Promise<void> {
  const { flags, words } = parseArguments(argv, { command: "./terse export", flags: { out: String } as const });
  if (words.length > 1)
    throw new OptionsError([`export takes one run, got "${words[1]}" too; the folder to write is --out FOLDER`]);
  const run = words[0] ?? newestRun();
  const from = await modelFolderOf(run);
  const out = resolve(flags.out ?? `${basename(resolve(run))}-model`);
  makeFolder(out);
  if (readdirSync(out).length > 0)
    throw new CheckpointError(`${out} is not empty: choose another folder, --out FOLDER`);
  const files = readdirSync(from).filter(ofModel);
  // The weights last: a folder that has them is complete.
  for (const name of files.sort((a, b) => Number(a.startsWith("model")) - Number(b.startsWith("model"))))
    copyFileSync(join(from, name), join(out, name));
  process.stdout.write(`${out}: ${files.join(", ")}\n`);
}
