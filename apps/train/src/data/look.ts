/** `./terse data look ROWS`: the first rows for fine-tuning as a model sees them, and what of them is learned. */
import { type ChatRowOptions, datasets, lookAtChat } from "@terse/data";
import { OptionsError, parseArguments, parseOptions, print, printText, v, wholeNumberFrom } from "@terse/options";
import { amountText } from "../format.ts";

/** How rows are read, by the names of a recipe's keys. */
export const rowFlags = {
  tokenizer: String,
  template: String,
  messages: String,
  prompt: String,
  completion: String,
  instruction: String,
  input: String,
  output: String,
  loss: String,
  date: String,
  endOfText: String,
  blockSize: wholeNumberFrom({ least: 2 }),
} as const;

const flags = {
  ...rowFlags,
  rows: wholeNumberFrom({ least: 1, most: 1000 }),
} as const;

export async function look(argv: readonly string[]): Promise<void> {
  const { flags: given, words } = parseArguments(argv, { command: "./terse data look", flags });
  const [path, more] = words;
  if (path === undefined || more !== undefined)
    throw new OptionsError([`look takes one file or folder of rows; got ${words.length}`]);
  const { rows: count = 3, blockSize, ...keys } = given;
  const { rows, remarks } = await lookAtChat(rowOptions(path, keys), { count, most: blockSize });
  for (const { tokens, parts } of rows) {
    const learned = parts.map(({ text, learned }) => (learned ? `⟦${text}⟧` : text)).join("");
    printText(`── ${amountText(tokens, "token")}; ⟦what is learned⟧\n${learned}`);
  }
  print(["──", ...remarks]);
}

/** Throws `OptionsError`. */
export const rowOptions = (path: string, keys: object): ChatRowOptions =>
  parseOptions(v.object(datasets.chat.options.entries), { path, ...keys }, "data") as object as ChatRowOptions;
