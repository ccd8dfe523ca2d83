/** `./terse sweep`: reports errors, and how to go on. */
import { reportFailure } from "../failure.ts";

// The reader of the output may stop, as in `… | head -1`: the rest is dropped, and the runs are ended.
for (const stream of [process.stdout, process.stderr])
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });

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
