import { requireBuildTools } from "./build-tools.ts";
import type { Environment } from "./environment.ts";
import { bringGloo, findGloo } from "./gloo.ts";
import { findNvcc } from "./graphics.ts";
import { bringLibtorch, findLibtorch } from "./libtorch.ts";
import { addons, buildAddon, buildState, isBuilt } from "./native.ts";
import { bringNvcc } from "./nvcc.ts";
import { installPackages, packagesAreInstalled } from "./packages.ts";
import { bringPnpm, findPnpm, pnpmVersion } from "./pnpm.ts";
import { bringPython, findPython } from "./python.ts";
import type { Steps } from "./steps.ts";
import { pins } from "./versions.ts";

export type Part = "packages" | "libraries" | "native" | "python" | "nvcc";

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
    environment.gloo =
      (await steps.check("Gloo", findGloo)) ??
      (await steps.run("Gloo", "under 1 MB to fetch, more where package lists are missing", bringGloo));
  }
  if (wants("native")) {
    for (const addon of addons) {
      if (buildState(addon, environment) === "current") continue;
      await steps.run(`native ${addon}`, "compiling", (progress) => buildAddon(addon, environment, progress));
    }
  }
  if (wants("python")) await python(steps, environment);
  if (wants("nvcc")) await nvcc(steps, environment);
  return environment;
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
