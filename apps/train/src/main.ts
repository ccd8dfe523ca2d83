/** `./terse train` and `./terse sample`: which process this is, and what it says when something is wrong. */
import { readWorldEnvironment } from "@terse/collectives";
import { readArguments, usage } from "./arguments.ts";
import { reportFailure } from "./failure.ts";

// No orphans: a rank whose launcher is gone has nobody to train for.
if (process.send) {
  process.on("disconnect", () => process.exit(1));
  process.channel?.unref();
}

async function main(): Promise<number> {
  const args = readArguments(process.argv.slice(2));
  if (args.help) {
    process.stdout.write(usage);
    return 0;
  }
  // Loaded here, after the line above that ends orphans: libtorch takes a moment to open.
  if (args.command === "sample") return (await import("./sample.ts")).sample(args);
  // Some launcher (ours, torchrun, mpirun, srun) has made this process a rank.
  if (readWorldEnvironment().launcher !== undefined) return (await import("./rank.ts")).runRank(args);
  return (await import("./launcher.ts")).launch(args);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = reportFailure(error);
}
