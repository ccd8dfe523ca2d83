/** `./terse advise`, and the other commands that look at runs and recipes, and train nothing. */
import { readFileSync } from "node:fs";
import { OptionsError, watchOutput } from "@terse/options";
import { reportFailure } from "../failure.ts";

const commands: Record<string, () => Promise<(argv: readonly string[]) => Promise<void>>> = {
  config: async () => (await import("./config.ts")).configCommand,
  compare: async () => (await import("./compare.ts")).compareCommand,
  completion: async () => (await import("./completion.ts")).completionCommand,
  export: async () => (await import("./export.ts")).exportCommand,
  advise: async () => (await import("./advise.ts")).adviseCommand,
};

async function main([name = "", ...argv]: readonly string[]): Promise<void> {
  if (argv.some((word) => word === "--help" || word === "-h"))
    return void process.stdout.write(readFileSync(new URL("help.txt", import.meta.url), "utf8"));
  const command = commands[name];
  if (command === undefined) throw new OptionsError([`${name}: the commands are ${Object.keys(commands).join(", ")}`]);
  await (await command())(argv);
}

watchOutput();
try {
  await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = reportFailure(error);
}
