import { join } from "node:path";
// These import no package, so they run before any is installed.
import { nearest } from "../packages/options/src/nearest.ts";
import { OptionsError } from "../packages/options/src/options-error.ts";
import { parseArguments } from "../packages/options/src/parse-arguments.ts";
import { linesOfError, print, printText } from "../packages/options/src/print.ts";
import { watchOutput } from "../packages/options/src/watch-output.ts";
import { ignoreHangup } from "./bundled/ignore-hangup.ts";
import { build, check } from "./commands/check.ts";
import { docs, docsFolder } from "./commands/docs.ts";
import { doctor } from "./commands/doctor.ts";
import { findForTests, type Part, setUp } from "./commands/set-up.ts";
import { asksForGpu } from "./dependencies/gpu-kernels.ts";
import { asShell, type Environment, variables } from "./environment.ts";
import { argumentsOf, nodeFlags, programs, toCompare, toRun } from "./programs.ts";
import { release, releaseFolder } from "./publish/release.ts";
import { SetUpFailed, Steps, seconds } from "./steps.ts";
import { vitestArguments } from "./testing/vitest-arguments.ts";
import { root, toolchain } from "./toolchain.ts";

const everything: readonly Part[] = [...toCompare, "browser", "arm", "nvcc", "mpi", "slurm"];
const [name = "", ...args] = process.argv.slice(2);
const steps = new Steps({ folder: toolchain, checkout: root });

/** What a set-up can go without, for the sentence about what is missing. */
const uses = {
  python: "the Python that tests compare results with",
  browser: "Chromium, which tests open pages with",
  arm: "the ARM compiler and QEMU, which run the ARM kernels in tests",
  nvcc: "the CUDA compiler, which compiles the kernels",
  mpi: "Open MPI, which starts ranks in tests",
  slurm: "Slurm, which starts ranks in tests",
};

const commands: Record<string, () => Promise<void>> = {
  test: async () => {
    const environment = await setUp(steps, everything);
    process.chdir(root);
    becomeNode(environment, [...nodeFlags, "node_modules/vitest/vitest.mjs", ...vitestArguments, ...args]);
  },
  netlab: async () => {
    await setUp(steps, toRun);
    // With the environment unchanged: a ./terse on a host finds the same dependencies, and rebuilds nothing.
    const argv = [process.execPath, join(root, "tools/netlab/main.ts"), ...args];
    process.execve!(process.execPath, argv, process.env as Record<string, string>);
  },
  check: async () => {
    const environment = await setUp(steps, ["packages", "formatters"]);
    if (!(await check(environment, { write: args.includes("--write") }))) process.exitCode = 1;
  },
  build: async () => {
    const environment = await setUp(steps, toRun);
    if (!(await build(environment))) process.exitCode = 1;
  },
  release: async () => {
    const out = await steps.check("release", () => releaseFolder(args));
    await release(steps, variables(await setUp(steps, ["packages", "libraries"])), out);
  },
  docs: async () => {
    const out = await steps.check("docs", () => docsFolder(args));
    const page = await docs(steps, variables(await setUp(steps, ["packages"])), out);
    process.stdout.write(`open ${page}\n`);
  },
  doctor: async () => doctor(args.includes("--json")),
  setup: async () => {
    const start = Date.now();
    const { missing = {} } = await setUp(steps, [...everything, "kernels", "formatters"]);
    const without = Object.entries(uses).flatMap(([part, use]) => (missing[part] ? [use] : []));
    const all = `everything is installed${without.length > 0 ? `, except ${without.join(", ")}` : ""}`;
    process.stderr.write(`${all} (${seconds(Date.now() - start)})\n`);
  },
  env: async () => {
    const environment = { ...(await setUp(steps, ["libraries"])), ...(await findForTests(steps)) };
    process.stdout.write(`${asShell(variables(environment))}\n`);
  },
};

/** The switches of commands that take nothing else. */
const switches: Record<string, Record<string, "switch">> = {
  check: { write: "switch" },
  build: {},
  doctor: { json: "switch" },
  setup: {},
  env: {},
};

/** Throws `OptionsError` for a word that the command would leave unread. */
function refuseOthers(name: string): void {
  const flags = switches[name];
  if (flags === undefined) return;
  const { words } = parseArguments(args, { command: `./terse ${name}`, flags });
  if (words.length > 0) throw new OptionsError([`${words[0] || '""'}: ${name} takes no argument; see ./terse help`]);
}

/** Replaces this process by Node with these arguments, which then owns signals, terminal and exit code. */
function becomeNode(environment: Environment, nodeArguments: readonly string[]): never {
  const env = { ...process.env, ...variables(environment) } as Record<string, string>;
  return process.execve!(process.execPath, [process.execPath, ...nodeArguments], env);
}

ignoreHangup();
watchOutput();
try {
  const program = programs[name];
  if (program) {
    const needs: readonly Part[] = asksForGpu(args) ? [...program.needs, "kernels"] : program.needs;
    becomeNode(await setUp(steps, needs), argumentsOf(program, [name, ...args]));
  }
  const command = commands[name];
  if (command === undefined) {
    const meant = nearest(name, [...Object.keys(programs), ...Object.keys(commands), "help"]);
    print(
      `terse: there is no command "${name}"${meant ? `; did you mean "${meant}"?` : "."} See ./terse help.`,
      process.stderr,
    );
    process.exitCode = 2;
  } else {
    refuseOthers(name);
    await command();
  }
} catch (error) {
  if (error instanceof OptionsError) printText(`error: ${linesOfError(error).join("\n")}`, process.stderr);
  else if (error instanceof SetUpFailed)
    process.exit(1); // with the steps that still run
  else throw error;
  process.exitCode = 1;
}
