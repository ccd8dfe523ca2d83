/** `./terse cost`: the Lion Cub paper's performance model for any network, as a table, a picture and JSON. */
import { linesOfError, printText, watchOutput } from "@terse/options";
import { openOutput, writeOutput } from "../output.ts";
import { readArguments, usage } from "./arguments.ts";
import { picture } from "./picture.ts";
import { project } from "./projection.ts";
import { tableText } from "./text.ts";

function main(argv: readonly string[]): void {
  const args = readArguments(argv);
  if (args === "help") return void process.stdout.write(usage);
  const panels = project(args);
  const jsonFile = args.json === undefined || args.json === "-" ? undefined : openOutput("--json", args.json);
  const svgFile = args.svg === undefined ? undefined : openOutput("--svg", args.svg);
  const table = args.json === "-" ? process.stderr : process.stdout;
  table.write(`${panels.map((panel) => tableText(panel, table.columns)).join("\n")}\n* the fastest\n`);
  const { wordBits, valueBits } = args;
  const json = `${JSON.stringify({ command: ["./terse cost", ...argv].join(" "), wordBits, valueBits, panels }, undefined, 1)}\n`;
  if (args.json === "-") process.stdout.write(json);
  if (jsonFile !== undefined) writeOutput("--json", args.json!, jsonFile, json);
  if (svgFile !== undefined) writeOutput("--svg", args.svg!, svgFile, picture(panels));
}

watchOutput();
try {
  main(process.argv.slice(2));
} catch (error) {
  printText(`error: ${linesOfError(error).join("\n")}`, process.stderr);
  process.exitCode = 1;
}
