import { type AddonName, addons, buildAddon, buildState, isBuilt } from "../dependencies/addons.ts";
import { armIsHere, findArm, installArm } from "../dependencies/arm.ts";
import { findBrowser, installBrowser } from "../dependencies/browser.ts";
import { requireForBuilding } from "../dependencies/build-tools.ts";
import { findNvcc, installNvcc } from "../dependencies/cuda.ts";
import { findFormatters, installFormatters } from "../dependencies/formatters.ts";
import { findGloo, installGloo } from "../dependencies/gloo.ts";
import {
  architectures,
  buildKernels,
  driverIsHere,
  kernelsAreCurrent,
  withKernels,
} from "../dependencies/gpu-kernels.ts";
import { findLibtorch, installLibtorch } from "../dependencies/libtorch.ts";
import { findMpi, installMpi } from "../dependencies/mpi.ts";
import { installPackages, packagesAreInstalled } from "../dependencies/packages.ts";
import { requireGlibc } from "../dependencies/platform-packages.ts";
import { findPnpm, installPnpm, pnpmVersion } from "../dependencies/pnpm.ts";
import { findPython, installPython } from "../dependencies/python.ts";
import { findSlurm, installSlurm } from "../dependencies/slurm.ts";
import { pins } from "../dependencies/versions.ts";
import type { Environment } from "../environment.ts";
import type { Progress, Steps } from "../steps.ts";

export type Part =
  | "packages"
  | "libraries"
  | "native"
  | "python"
  | "browser"
  | "arm"
  | "nvcc"
  | "kernels"
  | "mpi"
  | "slurm"
  | "formatters";

/** Addons that are built with a library: the others are compiled while it is fetched. */
const withLibraries: readonly AddonName[] = ["collectives", "tensor"];

type OptionalPart = "gloo" | "mpi" | "python" | "browser" | "arm" | "slurm";

interface Optional<T> {
  name: string;
  step: string; // the name of the step that installs it
  about: string;
  find: () => T | undefined | Promise<T | undefined>;
  install: (progress: Progress) => Promise<T>;
}

/** What a set-up can go without. Without Gloo its engine is not built; tests that need a missing part are skipped. */
const optional: { [Part in OptionalPart]: Optional<NonNullable<Environment[Part]>> } = {
  gloo: {
    name: "Gloo",
    step: "Gloo",
    about: "under 1 MB to fetch, more where package lists are missing",
    find: findGloo,
    install: installGloo,
  },
  mpi: {
    name: "MPI",
    step: "Open MPI, for tests",
    about: "about 7 MB to fetch, 18 MB on disk",
    find: findMpi,
    install: installMpi,
  },
  python: {
    name: "Python with torch",
    step: "Python with torch, for tests",
    about: "about 2.6 GB to fetch, 5.4 GB on disk",
    find: findPython,
    install: installPython,
  },
  browser: {
    name: "Chromium",
    step: "Chromium, for tests",
    about: "about 70 MB to fetch, 210 MB on disk",
    find: findBrowser,
    install: installBrowser,
  },
  arm: {
    name: "ARM compiler and QEMU",
    step: "ARM compiler and QEMU, for tests",
    about: "about 60 MB to fetch, 200 MB on disk",
    find: findArm,
    install: installArm,
  },
  slurm: {
    name: "Slurm",
    step: "Slurm, for tests",
    about: "about 4 MB to fetch, 20 MB on disk",
    find: findSlurm,
    install: installSlurm,
  },
};

/** Installs what is missing of the wanted parts, dependencies first, and what is independent at the same time. */
export async function setUp(steps: Steps, parts: readonly Part[]): Promise<Environment> {
  const environment: Environment = {};
  const wants = (part: Part) => parts.includes(part);

  // Checked first, before anything large is fetched.
  if (wants("native") && addons.some((addon) => !isBuilt(addon))) {
    await steps.check("system", () => requireGlibc());
    const { found } = await steps.check("libtorch", findLibtorch);
    await steps.check("build tools", () => requireForBuilding(found === undefined));
  }
  environment.pnpm = findPnpm() ?? (await steps.run(`pnpm ${pnpmVersion}`, "about 25 MB to fetch", installPnpm));
  if (wants("packages") && !packagesAreInstalled()) {
    await steps.run("packages", "pnpm install", (progress) => installPackages(progress, environment.pnpm!));
  }
  if (wants("formatters"))
    environment.formatters =
      findFormatters() ?? (await steps.run("clang-format and ruff", "about 14 MB to fetch", installFormatters));
  const libraries = wants("libraries") ? findLibraries(steps, environment, wants("mpi")) : undefined;
  const native = async () => {
    for (const addon of addons) if (!withLibraries.includes(addon)) await build(steps, environment, addon);
    await libraries;
    for (const addon of withLibraries) await build(steps, environment, addon);
  };
  // apt's packages one after the other: each of them may fetch the same lists.
  const byApt = async () => {
    if (wants("arm") && !armIsHere) await findOrTry(steps, environment, "arm");
    if (wants("slurm")) await findOrTry(steps, environment, "slurm");
  };
  await Promise.all([
    libraries,
    wants("native") && native(),
    wants("python") && findOrTry(steps, environment, "python"),
    wants("browser") && findOrTry(steps, environment, "browser"),
    (wants("nvcc") || wants("kernels")) && nvccAndKernels(steps, environment, wants),
    byApt(),
  ]);
  return environment;
}

async function build(steps: Steps, environment: Environment, addon: AddonName): Promise<void> {
  if (buildState(addon, environment) === "current") return;
  await steps.run(`native ${addon}`, "compiling", (progress) => buildAddon(addon, environment, progress));
}

async function findLibraries(steps: Steps, environment: Environment, mayInstallMpi: boolean): Promise<void> {
  const { found } = await steps.check("libtorch", findLibtorch);
  environment.libtorch = found ?? (await steps.run(`libtorch ${pins.torch}`, "about 540 MB to fetch", installLibtorch));
  await findOrTry(steps, environment, "gloo");
  // The engine mpi is built if MPI is found; MPI is installed for the tests only.
  await findOrTry(steps, environment, "mpi", mayInstallMpi);
}

/** Finds what tests and benchmarks use beside that; installs nothing. */
export async function findForTests(steps: Steps): Promise<Environment> {
  const environment: Environment = {};
  for (const part of ["python", "browser", "slurm"] as const) await find(steps, environment, part);
  if (!armIsHere) await find(steps, environment, "arm");
  return environment;
}

/** Finds a part; installs it, where it may. */
async function findOrTry<Part extends OptionalPart>(
  steps: Steps,
  environment: Environment,
  part: Part,
  mayInstall = true,
): Promise<void> {
  const { step, about, install } = optional[part];
  await find(steps, environment, part);
  if (environment[part] !== undefined || !mayInstall) return;
  const outcome = await steps.try(step, about, install);
  if ("value" in outcome) environment[part] = outcome.value;
  else environment.missing = { ...environment.missing, [part]: outcome.reason };
}

async function find<Part extends OptionalPart>(steps: Steps, environment: Environment, part: Part): Promise<void> {
  const found = await steps.check(optional[part].name, optional[part].find);
  if (found !== undefined) environment[part] = found;
}

async function nvccAndKernels(steps: Steps, environment: Environment, wants: (part: Part) => boolean): Promise<void> {
  const here = driverIsHere();
  if (wants("nvcc") || here) await nvcc(steps, environment, wants("nvcc") ? ", for tests" : "");
  if (wants("kernels") && here) await kernels(steps, environment);
}

/** Tests compile the kernels even where there is no GPU; without it they are skipped, and say why. */
async function nvcc(steps: Steps, environment: Environment, purpose: string): Promise<void> {
  if (findNvcc([]) !== undefined) return;
  const outcome = await steps.try(`CUDA compiler${purpose}`, "about 105 MB to fetch, 270 MB on disk", installNvcc);
  if (!("value" in outcome)) environment.missing = { ...environment.missing, nvcc: outcome.reason };
}

/** For the GPUs of this machine. Without them a run on a GPU ends with what is missing, or goes through the CPU. */
async function kernels(steps: Steps, environment: Environment): Promise<void> {
  const [compiler, gpus] = [findNvcc([]), await architectures()];
  if (compiler === undefined) return;
  for (const part of withKernels)
    if (!kernelsAreCurrent(part, compiler, gpus))
      await steps.try(`GPU kernels of ${part}`, "compiling", (progress) =>
        buildKernels(part, compiler, gpus, environment, progress),
      );
}
