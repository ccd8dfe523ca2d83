import { delimiter, dirname } from "node:path";
import type { Arm } from "./dependencies/arm.ts";
import type { Formatters } from "./dependencies/formatters.ts";
import type { Gloo } from "./dependencies/gloo.ts";
import type { Libtorch } from "./dependencies/libtorch.ts";
import type { Mpi } from "./dependencies/mpi.ts";
import type { Slurm } from "./dependencies/slurm.ts";
import { toolchain } from "./toolchain.ts";
import { which } from "./which.ts";

/** The dependencies that were found or installed. */
export interface Environment {
  pnpm?: string; // the folder with its command
  libtorch?: Libtorch;
  gloo?: Gloo;
  mpi?: Mpi;
  python?: string;
  browser?: string;
  arm?: Arm;
  formatters?: Formatters;
  slurm?: Slurm;
  missing?: Readonly<Record<string, string>>; // the reasons, by the names of parts
}

/** The environment variables that builds, tests and runs read. */
export function variables(environment: Environment): Record<string, string> {
  const { pnpm, libtorch, gloo, mpi, python, browser, arm, slurm, missing = {} } = environment;
  const reasons = Object.entries(missing).map(([part, reason]) => [`TERSE_${part.toUpperCase()}_MISSING`, reason]);
  return {
    TERSE_TOOLCHAIN: toolchain,
    PATH: pathWith([which("node") === process.execPath ? undefined : dirname(process.execPath), pnpm]),
    ...(libtorch && { LIBTORCH: libtorch.root }),
    ...(gloo && { TERSE_GLOO: gloo.prefix }),
    ...(mpi?.prefix && { TERSE_MPI: mpi.prefix }),
    ...(python && { TERSE_PYTHON: python }),
    ...(browser && { TERSE_BROWSER: browser }),
    ...(arm && { TERSE_ARM_COMPILER: arm.compiler, TERSE_ARM_EMULATOR: arm.emulator }),
    ...(slurm?.prefix && { TERSE_SLURM: slurm.prefix }),
    ...Object.fromEntries(reasons), // TERSE_SLURM_MISSING and the like
  };
}

/** The variables as shell commands: `eval "$(./terse env)"`. */
export function asShell(values: Record<string, string>): string {
  return Object.entries(values)
    .map(([name, value]) => `export ${name}='${value.replaceAll("'", `'\\''`)}'`)
    .join("\n");
}

function pathWith(folders: (string | undefined)[]): string {
  const present = (process.env["PATH"] ?? "").split(delimiter);
  return [...new Set([...folders, ...present].filter((folder) => folder))].join(delimiter);
}
