/** `./terse page RUN…`: shows runs until it is ended. `follow-run.ts` shows the run of a training. */
import { globSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { mayExist } from "@terse/checkpoint";
import { endSignals, linesOfError, OptionsError, print, printText, watchOutput } from "@terse/options";
import { tokenVariable } from "./access.ts";
import { readArguments, usage } from "./arguments.ts";
import { openRuns } from "./run-folder.ts";
import { servePage } from "./server.ts";

async function main(): Promise<number> {
  const args = readArguments(process.argv.slice(2));
  if (args === "help") {
    process.stdout.write(usage);
    return 0;
  }
  const folders = args.runs.length > 0 ? args.runs : newestRun();
  const wrong = folders.filter(
    (folder) => !["metrics.jsonl", "recipe.json"].some((file) => mayExist(join(folder, file))),
  );
  if (wrong.length > 0)
    throw new OptionsError(
      wrong.map(
        (folder) =>
          `${folder} is no run's folder: it has neither metrics.jsonl nor recipe.json; name one such as runs/NAME-TIME`,
      ),
    );
  const runs = openRuns(folders);
  for (const { name, problems } of runs) for (const problem of problems) print(`${name}: ${problem}`, process.stderr);
  const ended = new Promise((resolve) => {
    for (const signal of endSignals) process.once(signal, resolve);
  });
  await using server = await servePage(runs, args.address, process.env[tokenVariable] || undefined);
  print([`${runs.map(({ name }) => name).join(", ")}: ${server.url}`, "Ctrl-C ends it"]);
  await ended;
  return 0;
}

function newestRun(): string[] {
  const time = (file: string) => statSync(file).mtimeMs;
  const newest = globSync("runs/*/metrics.jsonl").sort((a, b) => time(b) - time(a))[0];
  if (newest === undefined) throw new OptionsError(["there is no run in runs/; name the folder of a run"]);
  return [dirname(newest)];
}

watchOutput({ goesOn: true });
try {
  process.exitCode = await main();
} catch (error) {
  printText(`error: ${linesOfError(error).join("\n")}`, process.stderr);
  process.exitCode = error instanceof OptionsError ? 2 : 1;
}
