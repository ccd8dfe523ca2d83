import { globSync } from "node:fs";
import { basename, join } from "node:path";
import type { Environment } from "../environment.ts";
import { variables } from "../environment.ts";
import { CommandFailed, run } from "../run.ts";
import { paint, seconds } from "../steps.ts";
import { root } from "../toolchain.ts";

type Task = [title: string, command: string, args: string[]];
const turbo = ["--continue=dependencies-successful", "--output-logs=errors-only", "--ui=stream"];

/**
 * Checks style, types, and the packages as they would be published. Resolves to true if nothing is wrong. `write`:
 * formats the files before that.
 */
export function check(environment: Environment, { write }: { write: boolean }): Promise<boolean> {
  const { clangFormat, ruff } = environment.formatters!;
  return runTasks(environment, [
    ["style", bin("biome"), ["check", ...(write ? ["--write"] : []), "."]],
    [
      "style of C, C++ and CUDA",
      clangFormat,
      [...(write ? ["-i"] : ["--dry-run", "--Werror"]), ...sources("**/*.{c,cc,h,cu,cuh}")],
    ],
    ["style of Python", ruff, ["format", "--no-cache", ...(write ? [] : ["--diff"]), ...sources("**/*.py")]],
    ["types of the tools", bin("tsc"), ["-p", "tools"]],
    ["types and package lint", bin("turbo"), ["run", "typecheck", "lint:package", ...turbo]],
  ]);
}

/** Builds what would be published: the dist of each package. */
export function build(environment: Environment): Promise<boolean> {
  return runTasks(environment, [["dist of the packages", bin("turbo"), ["run", "build", ...turbo]]]);
}

const bin = (program: string) => join(root, "node_modules", ".bin", program);

const generated: readonly string[] = ["node_modules", "build", "dist", "runs", ".turbo", ".git"];

/** The project's own files of a pattern. */
const sources = (pattern: string): string[] =>
  globSync(pattern, { cwd: root, exclude: (path) => generated.includes(basename(path)) });

/** Runs all tasks, even after one has failed; prints the whole output of failed tasks. */
async function runTasks(environment: Environment, tasks: readonly Task[]): Promise<boolean> {
  const env = { ...variables(environment), TURBO_TELEMETRY_DISABLED: "1", DO_NOT_TRACK: "1" };
  let succeeded = true;
  for (const [title, command, args] of tasks) {
    const start = Date.now();
    const show = (mark: string) =>
      process.stderr.write(`${mark} ${title} ${paint(process.stderr, "dim", `· ${seconds(Date.now() - start)}`)}\n`);
    try {
      await run(command, args, { cwd: root, env });
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
