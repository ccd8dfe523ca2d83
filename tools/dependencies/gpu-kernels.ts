/**
 * The libraries with the kernels for GPUs, which the addons of codecs and optimizers open
 * (docs/how-to/train-on-gpus.md).
 */
import { createHash } from "node:crypto";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Environment, variables } from "../environment.ts";
import { ask } from "../run.ts";
import type { Progress } from "../steps.ts";
import { root } from "../toolchain.ts";
import { fileIdentity, hashFiles, parallelJobs, sourcesOf } from "./addons.ts";
import { requireBuildTools } from "./build-tools.ts";
import { withCheckoutLock } from "./packages.ts";

export const withKernels = ["codecs", "optimizers"] as const;
type Part = (typeof withKernels)[number];

const driverFiles = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"]; // the last one: of Windows' Linux

/** Whether this machine has an NVIDIA driver. */
export const driverIsHere = (files: readonly string[] = driverFiles): boolean => files.some((file) => existsSync(file));

/** Whether the words of a command ask for a GPU. */
export const asksForGpu = (args: readonly string[]): boolean => args.some((word) => /cuda/.test(word));

/** "90;120" for GPUs of compute capability 9.0 and 12.0; empty, for all of them, where the driver does not say. */
export async function architectures(): Promise<string> {
  const listed = await ask("nvidia-smi", ["--query-gpu=compute_cap", "--format=csv,noheader"]);
  return capabilitiesIn(listed ?? "");
}

export function capabilitiesIn(listed: string): string {
  const numbers = [...listed.matchAll(/^(\d+)\.(\d+)$/gm)].map(([, major, minor]) => `${major}${minor}`);
  return [...new Set(numbers)].sort().join(";");
}

const folderOf = (part: Part) => join(root, "native", part, "cuda", "build");
const stampFile = (part: Part) => join(folderOf(part), "terse-stamp.json");

/** What the library is built from. */
function stampOf(part: Part, nvcc: string, gpus: string): string {
  const sources = [...sourcesOf(part), ...globSync("native/cuda/*.cuh", { cwd: root }).sort()];
  const hash = createHash("sha256").update(JSON.stringify([fileIdentity(nvcc), gpus, hashFiles(root, sources)]));
  return JSON.stringify(hash.digest("hex"));
}

const isBuilt = (part: Part) => existsSync(join(folderOf(part), `libterse_${part}_cuda.so`));

export const kernelsAreBuilt = (): boolean => withKernels.every(isBuilt);

export function kernelsAreCurrent(part: Part, nvcc: string, gpus: string): boolean {
  const file = stampFile(part);
  return isBuilt(part) && existsSync(file) && readFileSync(file, "utf8") === stampOf(part, nvcc, gpus);
}

export async function buildKernels(
  part: Part,
  nvcc: string,
  gpus: string,
  environment: Environment,
  progress: Progress,
): Promise<void> {
  requireBuildTools();
  await withCheckoutLock(progress, async () => {
    if (kernelsAreCurrent(part, nvcc, gpus)) return;
    rmSync(stampFile(part), { force: true });
    for (const words of commandsFor(part, gpus)) await progress.run("cmake", words, { env: variables(environment) });
    mkdirSync(folderOf(part), { recursive: true });
    writeFileSync(stampFile(part), stampOf(part, nvcc, gpus));
  });
}

/** What cmake is told, one after the other. */
export function commandsFor(part: Part, gpus: string, jobs = parallelJobs()): string[][] {
  const build = folderOf(part);
  return [
    ["-S", join(root, "native", part, "cuda"), "-B", build, `-DTERSE_CUDA_ARCHITECTURES=${gpus}`],
    ["--build", build, "--target", `terse_${part}_cuda`, "--parallel", String(jobs)],
  ];
}
