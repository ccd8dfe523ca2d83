/** `./terse train`, `sample` and `eval`: decides whether this process is a launcher or a rank, and reports errors. */
import { print, watchOutput } from "@terse/options";
import { reportFailure } from "./failure.ts";
import { remarkOnRanks } from "./launcher/flags.ts";
import { printResume } from "./saves/resume-command.ts";

// A rank whose launcher is gone ends too.
if (process.send) {
  process.on("disconnect", () => process.exit(1));
  process.channel?.unref();
}

// A run goes on where its lines go to a full disk; of a dry run they are all.
watchOutput({ goesOn: process.argv[2] === "train" && !process.argv.includes("--dry-run") });

// Everything else is loaded after the lines above, because libtorch takes a moment to open.
async function main(): Promise<number> {
  const { readArguments, usage } = await import("./arguments.ts");
  const args = readArguments(process.argv.slice(2));
  if (args === "help") {
    process.stdout.write(usage);
    return 0;
  }
  if (args.command === "sample") return (await import("./sample.ts")).sample(args);
  if (args.command === "train" && args.dryRun) return (await import("./dry-run/dry-run.ts")).dryRun(args);
  const { readWorldEnvironment } = await import("@terse/collectives");
  // A launcher (ours, torchrun, mpirun or srun) has made this process a rank; without one it starts its machine's
  // ranks.
  const environment = readWorldEnvironment();
  const runsHere = environment.launcher !== undefined && !args.isLauncher;
  const remark = runsHere ? remarkOnRanks(args, environment) : undefined;
  if (remark !== undefined) print(remark, process.stderr);
  if (args.command === "eval") {
    if (runsHere || (args.nnodes === 1 && args.nprocPerNode === 1))
      return (await import("./eval/eval.ts")).runEval(args);
    return (await import("./launcher/launch.ts")).launch(args);
  }
  if (runsHere) return (await import("./rank.ts")).runRank(args);
  return (await import("./launcher/launch.ts")).launchTraining(args);
}

try {
  process.exitCode = await main();
} catch (error) {
  process.exitCode = reportFailure(error);
}
printResume(process.exitCode);
