/** `./terse data prepare ROWS --chat`: writes rows for fine-tuning as tokens, which data.name: chat reads. */
import { mayExist } from "@terse/checkpoint";
import { prepareRows } from "@terse/data";
import { OptionsError, parseArguments, print } from "@terse/options";
import { amountText, bytesText, durationText } from "../format.ts";
import { inventoryLines } from "../inventory-lines.ts";
import { quotedForShell } from "../saves/resume-command.ts";
import { rowFlags, rowOptions } from "./look.ts";
import { ProgressBar } from "./progress-bar.ts";
import { untilSignal } from "./until-signal.ts";

const flags = { chat: "switch", out: String, ...rowFlags } as const;

export async function prepareRowsCommand(argv: readonly string[]): Promise<void> {
  const { flags: given, words } = parseArguments(argv, { command: "./terse data prepare --chat", flags });
  const [path, more] = words;
  if (path === undefined || more !== undefined)
    throw new OptionsError([`prepare --chat takes one file or folder of rows; got ${words.length}`]);
  if (!mayExist(path)) throw new OptionsError([`there is no file or folder at ${path}`]);
  const { out = "data", chat: _, blockSize, ...keys } = given;
  const began = performance.now();
  const { files, inventory, remarks } = await untilSignal(async (signal) => {
    using bar = new ProgressBar(`tokenizing ${path}`, bytesText);
    const options = { ...rowOptions(path, keys), out, most: blockSize, signal };
    return prepareRows(options, (done, total) => bar.at(done, total));
  });
  const asked = Object.entries({ ...keys, ...(blockSize !== undefined && { blockSize }) });
  print([
    ...inventoryLines(inventory),
    ...remarks,
    `tokenized in ${durationText((performance.now() - began) / 1000)}`,
    ...files.map(
      ({ path, rows, tokens, bytes }) =>
        `wrote ${path}: ${amountText(rows, "row")}, ${amountText(tokens, "token")}, ${bytesText(bytes)}`,
    ),
    [
      "train with --data.name=chat",
      `--data.path=${quotedForShell(out)}`,
      ...asked.map(([key, value]) => `--data.${key}=${quotedForShell(String(value))}`),
    ].join(" "),
  ]);
}
