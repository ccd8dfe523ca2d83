import { join } from "node:path";
import { CommandFailed, run } from "../run.ts";
import { paint, seconds } from "../steps.ts";
import { root } from "../toolchain.ts";

type Task = [title: string, command: string, args: string[]];
const turbo = ["--continue=dependencies-successful", "--output-logs=errors-only", "--ui=stream"];

/** Checks style, types, and the packages as they would be published. Resolves to true if nothing is wrong. */
export function check(variables: Record<string, string>): Promise<boolean> {
  return runTasks(variables, [
    ["style", "biome", ["check", "."]],
    ["types of the tools", "tsc", ["-p", "tools"]],
    ["types and package lint", "turbo", ["run", "typecheck", "lint:package", ...turbo]],
  ]);
}

/** Builds what would be published: the dist of each package. */
export function build(variables: Record<string, string>): Promise<boolean> {
  return runTasks(variables, [["dist of the packages", "turbo", ["run", "build", ...turbo]]]);
}

/** Runs all tasks, even after one has failed; prints the whole output of failed tasks. */
async function runTasks(variables: Record<string, string>, tasks: readonly Task[]): Promise<boolean> {
  const env = { ...variables, TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" };
  let succeeded = true;
  for (const [title, command, args] of tasks) {
    const start = Date.now();
    const show = (mark: string) =>
      process.stderr.write(`${mark} ${title} ${paint(process.stderr, "dim", `· ${seconds(Date.now() - start)}`)}\n`);
    try {
      await run(join(root, "node_modules", ".bin", command), args, { cwd: root, env });
      show(paint(process.stderr, "green", "✓"));
    } catch (error) {
      if (!(error instanceof CommandFailed)) throw error;
      succeeded = false;
      show(paint(process.stderr, "red", "✗"));
      process.stderr.write(`${error.output}${error.message}\n`);
    }
  }
  return succeeded;
}
