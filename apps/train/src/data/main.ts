/** `./terse data …`: writes texts and rows as files of tokens, fetches published data, and shows rows. */
import { readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { mayExist } from "@terse/checkpoint";
import {
  fetchSource,
  hasColumns,
  openTokenizer,
  type PublishedData,
  prepareTokens,
  sources,
  withoutEnd,
} from "@terse/data";
import { nearest, numberFrom, OptionsError, parseArguments, print, watchOutput, wholeNumberFrom } from "@terse/options";
import { reportFailure } from "../failure.ts";
import { amountText, bytesText, durationText } from "../format.ts";
import { inventoryLines } from "../inventory-lines.ts";
import { quotedForShell } from "../saves/resume-command.ts";
import { look } from "./look.ts";
import { prepareRowsCommand } from "./prepare-rows-command.ts";
import { ProgressBar } from "./progress-bar.ts";
import { untilSignal } from "./until-signal.ts";

const flags = {
  out: String, // a folder
  tokenizer: String, // bytes, gpt2, or the path of a tokenizer.json
  endOfText: String, // the token between two texts
  chat: "switch", // rows for fine-tuning (prepare-rows-command.ts)
  column: String, // of jsonl, json, csv, tsv and parquet
  validationFraction: numberFrom({ least: 0, most: 0.5 }),
  shards: wholeNumberFrom({ least: 1, most: sources.fineweb.files.length - 1 }), // of data that is published in shards
} as const;

async function main([command, ...argv]: readonly string[]): Promise<void> {
  const usage = readFileSync(new URL("help.txt", import.meta.url), "utf8");
  if (command === undefined || command === "--help" || command === "-h") return void process.stdout.write(usage);
  const isHelp = argv.some((word) => word === "--help" || word === "-h");
  if (command === "look" && !isHelp) return look(argv);
  if (command !== "prepare" && command !== "look")
    throw new OptionsError([`data ${command}: the commands are ./terse data prepare and look; see --help`]);
  if (argv.includes("--chat") && !isHelp) return prepareRowsCommand(argv);
  const { help, flags: given, words } = parseArguments(argv, { command: "./terse data prepare", flags });
  if (help) return void process.stdout.write(usage);
  const [what, more] = words;
  if (what === undefined || more !== undefined)
    throw new OptionsError([
      `prepare takes one file or folder of text, or one of ${Object.keys(sources).join(", ")}; got ${words.length}`,
    ]);
  const out = given.out ?? "data";
  const published = Object.hasOwn(sources, what) ? (sources as Record<string, PublishedData>)[what] : undefined;
  if (given.shards !== undefined && !published?.inShards)
    throw new OptionsError([`--shards: only fineweb is published in shards, and this is ${what}; leave it out`]);
  if (published === undefined && !mayExist(what)) {
    const near = nearest(what, Object.keys(sources));
    const meant = near === undefined ? "" : `; did you mean ${near}?`;
    throw new OptionsError([`there is no file or folder at ${what}, and no published data has this name${meant}`]);
  }
  if (given.column !== undefined && (published !== undefined || !(await hasColumns(what, given.column))))
    throw new OptionsError([
      `--column: ${what} has no columns: jsonl, json, csv, tsv and parquet have them; leave it out`,
    ]);
  if (published === undefined) return prepare(what, out, given);
  if (given.tokenizer !== undefined && !published.isText)
    throw new OptionsError([`--tokenizer: ${what} is not fetched as plain text; leave it out`]);
  const fetched = await fetchAll(published, out, given.shards ?? 1);
  if (given.tokenizer !== undefined) return prepare(fetched, out, given);
  say(`${what} is in ${fetched}`, `train with ${published.options} --data.path=${fetched}`);
}

/** The fetched file, or the folder of several. */
async function fetchAll({ files, folder, inShards }: PublishedData, out: string, shards: number): Promise<string> {
  let path = out;
  for (const file of files.slice(0, inShards ? 1 + shards : files.length)) {
    using bar = new ProgressBar(`fetching ${basename(file.url)}`, bytesText);
    path = await fetchSource(file, out, (done, total) => bar.at(done, total));
  }
  return folder === undefined ? path : join(out, folder);
}

async function prepare(
  path: string,
  out: string,
  {
    tokenizer = "gpt2",
    endOfText,
    column,
    validationFraction = 0.1,
  }: { tokenizer?: string; endOfText?: string; column?: string; validationFraction?: number },
): Promise<void> {
  const began = performance.now();
  const opened = await openTokenizer(tokenizer, { endOfText });
  const options = { path, out, tokenizer: opened, column, validationFraction };
  const { files, documents, inventory } = await untilSignal(async (signal) => {
    using bar = new ProgressBar(`tokenizing ${path}`, bytesText);
    return prepareTokens({ ...options, signal }, (done, total) => bar.at(done, total));
  });
  const seconds = (performance.now() - began) / 1000;
  const { vocabulary } = opened;
  const known =
    tokenizer === "gpt2"
      ? "--model.name=gpt2"
      : `--data.vocabulary=${vocabulary} --data.tokenizer=${quotedForShell(tokenizer)} --model.vocabulary=${vocabulary}`;
  say(
    ...inventoryLines(inventory),
    `${amountText(documents, "document")} tokenized by ${tokenizer} (${amountText(vocabulary, "token")}) in ${durationText(seconds)}`,
    ...withoutEnd(documents, opened, "--end-of-text"),
    ...files.map((file) => `wrote ${file.path}: ${amountText(file.tokens, "token")}, ${bytesText(file.bytes)}`),
    `train with --data.name=tokens --data.path=${quotedForShell(out)} ${known}`,
  );
}

const say = (...lines: readonly string[]) => print(lines);

watchOutput();
try {
  await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = reportFailure(error);
}
