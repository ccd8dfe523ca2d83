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
  mpiMissing?: string; // the reason
  python?: string;
  pythonMissing?: string;
  browser?: string;
  browserMissing?: string;
  arm?: Arm;
  armMissing?: string;
  nvccMissing?: string;
  formatters?: Formatters;
  slurm?: Slurm;
  slurmMissing?: string;
}

/** The environment variables that builds, tests and runs read. */
export function variables(environment: Environment): Record<string, string> {
  const {
    pnpm,
    libtorch,
    gloo,
    mpi,
    mpiMissing,
    python,
    pythonMissing,
    browser,
    browserMissing,
    arm,
    armMissing,
    nvccMissing,
    slurm,
    slurmMissing,
  } = environment;
  return {
    TERSE_TOOLCHAIN: toolchain,
    PATH: pathWith([which("node") === process.execPath ? undefined : dirname(process.execPath), pnpm]),
    ...(libtorch && { LIBTORCH: libtorch.root }),
    ...(gloo && { TERSE_GLOO: gloo.prefix }),
    ...(mpi?.prefix && { TERSE_MPI: mpi.prefix }),
    ...(mpiMissing && { TERSE_MPI_MISSING: mpiMissing }),
    ...(python && { TERSE_PYTHON: python }),
    ...(pythonMissing && { TERSE_PYTHON_MISSING: pythonMissing }),
    ...(browser && { TERSE_BROWSER: browser }),
    ...(browserMissing && { TERSE_BROWSER_MISSING: browserMissing }),
    ...(arm && { TERSE_ARM_COMPILER: arm.compiler, TERSE_ARM_EMULATOR: arm.emulator }),
    ...(armMissing && { TERSE_ARM_MISSING: armMissing }),
    ...(nvccMissing && { TERSE_NVCC_MISSING: nvccMissing }),
    ...(slurm?.prefix && { TERSE_SLURM: slurm.prefix }),
    ...(slurmMissing && { TERSE_SLURM_MISSING: slurmMissing }),
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
