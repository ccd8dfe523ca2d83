import { addons, buildAddon, buildState, isBuilt } from "../dependencies/addons.ts";
import { armIsHere, bringArm, findArm } from "../dependencies/arm.ts";
import { bringBrowser, findBrowser } from "../dependencies/browser.ts";
import { requireBuildTools } from "../dependencies/build-tools.ts";
import { bringNvcc, findNvcc } from "../dependencies/cuda.ts";
import { bringGloo, findGloo } from "../dependencies/gloo.ts";
import { bringLibtorch, findLibtorch } from "../dependencies/libtorch.ts";
import { bringMpi, findMpi } from "../dependencies/mpi.ts";
import { installPackages, packagesAreInstalled } from "../dependencies/packages.ts";
import { bringPnpm, findPnpm, pnpmVersion } from "../dependencies/pnpm.ts";
import { bringPython, findPython } from "../dependencies/python.ts";
import { bringSlurm, findSlurm } from "../dependencies/slurm.ts";
import { pins } from "../dependencies/versions.ts";
import type { Environment } from "../environment.ts";
import type { Steps } from "../steps.ts";

export type Part = "packages" | "libraries" | "native" | "python" | "browser" | "arm" | "nvcc" | "mpi" | "slurm";

/** Brings what is missing of the wanted parts, in the order in which they need each other. */
export async function setUp(steps: Steps, parts: readonly Part[]): Promise<Environment> {
  const environment: Environment = {};
  const wants = (part: Part) => parts.includes(part);

  // Told before anything large is fetched.
  if (wants("native") && addons.some((addon) => !isBuilt(addon))) await steps.check("build tools", requireBuildTools);
  environment.pnpm = findPnpm() ?? (await steps.run(`pnpm ${pnpmVersion}`, "about 25 MB to fetch", bringPnpm));
  if (wants("packages") && !packagesAreInstalled()) {
    await steps.run("packages", "pnpm install", (progress) => installPackages(progress, environment.pnpm!));
  }
  if (wants("libraries")) {
    const { found } = await steps.check("libtorch", findLibtorch);
    environment.libtorch = found ?? (await steps.run(`libtorch ${pins.torch}`, "about 540 MB to fetch", bringLibtorch));
    await gloo(steps, environment);
  }
  // Built in where it is found, and brought for the tests only.
  if (wants("libraries")) await mpi(steps, environment, wants("mpi"));
  if (wants("native")) {
    for (const addon of addons) {
      if (buildState(addon, environment) === "current") continue;
      await steps.run(`native ${addon}`, "compiling", (progress) => buildAddon(addon, environment, progress));
    }
  }
  if (wants("python")) await python(steps, environment);
  if (wants("browser")) await browser(steps, environment);
  if (wants("arm") && !armIsHere) await arm(steps, environment);
  if (wants("nvcc")) await nvcc(steps, environment);
  if (wants("slurm")) await slurm(steps, environment);
  return environment;
}

/** Only the engine gloo needs it: without it that engine is not built, and its tests are skipped. */
async function gloo(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Gloo", findGloo);
  const about = "under 1 MB to fetch, more where package lists are missing";
  const outcome = found ? { value: found } : await steps.try("Gloo", about, bringGloo);
  if ("value" in outcome) environment.gloo = outcome.value;
}

async function mpi(steps: Steps, environment: Environment, comes: boolean): Promise<void> {
  const found = await steps.check("MPI", findMpi);
  if (found !== undefined) environment.mpi = found;
  if (found !== undefined || !comes) return;
  const outcome = await steps.try("Open MPI, for tests", "about 7 MB to fetch, 18 MB on disk", bringMpi);
  if ("value" in outcome) environment.mpi = outcome.value;
  else environment.mpiMissing = outcome.reason;
}

/** Nothing but the comparison with PyTorch needs it: without it those tests are skipped, with the reason. */
async function python(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Python with torch", findPython);
  if (found !== undefined) {
    environment.python = found;
    return;
  }
  const outcome = await steps.try("Python with torch, for tests", "about 2.5 GB to fetch, 4.7 GB on disk", bringPython);
  if ("value" in outcome) environment.python = outcome.value;
  else environment.pythonMissing = outcome.reason;
}

/** The kernels are compiled by the tests, and by whoever has a GPU: without it those tests are skipped, with the reason. */
async function nvcc(steps: Steps, environment: Environment): Promise<void> {
  if (findNvcc([]) !== undefined) return;
  const outcome = await steps.try("CUDA compiler, for tests", "about 105 MB to fetch, 270 MB on disk", bringNvcc);
  if (!("value" in outcome)) environment.nvccMissing = outcome.reason;
}

/** Only the test of the codecs on a page needs it. */
async function browser(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Chromium", findBrowser);
  const about = "about 70 MB to fetch, 210 MB on disk";
  const outcome = found ? { value: found } : await steps.try("Chromium, for tests", about, bringBrowser);
  if ("value" in outcome) environment.browser = outcome.value;
  else environment.browserMissing = outcome.reason;
}

/** Only the tests of the ARM kernels on another machine need it. */
async function arm(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("ARM compiler and QEMU", findArm);
  const about = "about 60 MB to fetch, 200 MB on disk";
  const outcome = found ? { value: found } : await steps.try("ARM compiler and QEMU, for tests", about, bringArm);
  if ("value" in outcome) environment.arm = outcome.value;
  else environment.armMissing = outcome.reason;
}

/** Only the tests of ranks that srun starts need it. */
async function slurm(steps: Steps, environment: Environment): Promise<void> {
  const found = await steps.check("Slurm", findSlurm);
  const outcome = found
    ? { value: found }
    : await steps.try("Slurm, for tests", "about 4 MB to fetch, 20 MB on disk", bringSlurm);
  if ("value" in outcome) environment.slurm = outcome.value;
  else environment.slurmMissing = outcome.reason;
}
