/** `./terse sweep`: reports errors, and how to go on. */
import { watchOutput } from "@terse/options";
import { reportFailure } from "../failure.ts";

watchOutput({ goesOn: true });

async function main(): Promise<number> {
  const { readSweepArguments, usage } = await import("./sweep-arguments.ts");
  const args = readSweepArguments(process.argv.slice(2));
  if (args === "help") {
    process.stdout.write(usage());
    return 0;
  }
  return (await import("./sweep.ts")).sweep(args);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = reportFailure(error);
}
