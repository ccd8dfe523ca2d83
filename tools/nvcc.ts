import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { findNvcc } from "./graphics.ts";
import { findOrBringPip, pipInstall } from "./pip.ts";
import { requireSpace } from "./remedy.ts";
import type { Progress } from "./steps.ts";
import { bring, toolchain, whole } from "./toolchain.ts";
import { pins } from "./versions.ts";

const folder = join(toolchain, `cuda-${pins.cuda}`);

/** The CUDA compiler from pip, without its dependencies: what compiles kernels where no CUDA toolkit is installed. */
export async function bringNvcc(progress: Progress): Promise<string> {
  mkdirSync(toolchain, { recursive: true });
  requireSpace(toolchain, 1e9);
  const pip = await findOrBringPip(progress);
  const fill = async (partial: string) => {
    const scratch = join(partial, ".scratch");
    mkdirSync(scratch);
    const wheels = ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl"];
    const pinned = wheels.map((wheel) => `${wheel}==${pins.cuda}.*`);
    await pipInstall(progress, pip, partial, scratch, ["--no-deps", ...pinned]);
    rmSync(scratch, { recursive: true });
  };
  await bring(folder, fill, () => progress.say("another set-up is bringing it"));
  const nvcc = findNvcc([folder]);
  return whole(nvcc !== undefined && existsSync(nvcc) ? nvcc : undefined, folder);
}
