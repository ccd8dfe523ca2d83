/** `./terse train` and `./terse sample`: which process this is, and what it says when something is wrong. */
import { readArguments, usage } from "./arguments.ts";
import { reportFailure } from "./failure.ts";
import { launch } from "./launcher.ts";
import { isRank, runRank } from "./rank.ts";
import { sample } from "./sample.ts";

async function main(): Promise<number> {
  const args = readArguments(process.argv.slice(2));
  if (args.help) {
    process.stdout.write(usage);
    return 0;
  }
  if (args.command === "sample") return sample(args);
  if (isRank(process.env)) return runRank(args);
  return launch(args);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = reportFailure(error);
}
