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
import type { Steps } from "../steps.ts";

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
    if (wants("arm") && !armIsHere) await arm(steps, environment);
    if (wants("slurm")) await slurm(steps, environment);
  };
  await Promise.all([
    libraries,
    wants("native") && native(),
    wants("python") && python(steps, environment),
    wants("browser") && browser(steps, environment),
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
  await gloo(steps, environment);
  // The engine mpi is built if MPI is found; MPI is installed for the tests only.
  await mpi(steps, environment, mayInstallMpi);
}

/** Finds what tests and benchmarks use beside that; installs nothing. */
export async function findForTests(steps: Steps): Promise<Environment> {
  const found = {
    python: await steps.check("Python with torch", findPython),
    browser: await steps.check("Chromium", findBrowser),
    arm: armIsHere ? undefined : await steps.check("ARM compiler and QEMU", findArm),
    slurm: await steps.check("Slurm", findSlurm),
  };
  return Object.fromEntries(Object.entries(found).filter(([, value]) => value !== undefined));
}

/** Without Gloo the engine gloo is not built, and its tests are skipped. */
async function gloo(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Gloo", findGloo);
  const about = "under 1 MB to fetch, more where package lists are missing";
  const outcome = found ? { value: found } : await steps.try("Gloo", about, installGloo);
  if ("value" in outcome) environment.gloo = outcome.value;
}

async function mpi(steps: Steps, environment: Environment, mayInstall: boolean): Promise<void> {
  const found = await steps.check("MPI", findMpi);
  if (found !== undefined) environment.mpi = found;
  if (found !== undefined || !mayInstall) return;
  const outcome = await steps.try("Open MPI, for tests", "about 7 MB to fetch, 18 MB on disk", installMpi);
  if ("value" in outcome) environment.mpi = outcome.value;
  else environment.mpiMissing = outcome.reason;
}

/** Without it the tests that compare results with PyTorch are skipped, and say why. */
async function python(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Python with torch", findPython);
  if (found !== undefined) {
    environment.python = found;
    return;
  }
  const outcome = await steps.try(
    "Python with torch, for tests",
    "about 2.6 GB to fetch, 5.4 GB on disk",
    installPython,
  );
  if ("value" in outcome) environment.python = outcome.value;
  else environment.pythonMissing = outcome.reason;
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
  if (!("value" in outcome)) environment.nvccMissing = outcome.reason;
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

/** Only the tests that open pages need it. */
async function browser(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Chromium", findBrowser);
  const about = "about 70 MB to fetch, 210 MB on disk";
  const outcome = found ? { value: found } : await steps.try("Chromium, for tests", about, installBrowser);
  if ("value" in outcome) environment.browser = outcome.value;
  else environment.browserMissing = outcome.reason;
}

/** Only the tests that run the ARM kernels on another processor need them. */
async function arm(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("ARM compiler and QEMU", findArm);
  const about = "about 60 MB to fetch, 200 MB on disk";
  const outcome = found ? { value: found } : await steps.try("ARM compiler and QEMU, for tests", about, installArm);
  if ("value" in outcome) environment.arm = outcome.value;
  else environment.armMissing = outcome.reason;
}

/** Only the tests that start ranks with srun need it. */
async function slurm(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Slurm", findSlurm);
  const outcome = found
    ? { value: found }
    : await steps.try("Slurm, for tests", "about 4 MB to fetch, 20 MB on disk", installSlurm);
  if ("value" in outcome) environment.slurm = outcome.value;
  else environment.slurmMissing = outcome.reason;
}
