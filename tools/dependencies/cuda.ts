import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ask } from "../run.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { pipInstall } from "./pip.ts";
import { pins } from "./versions.ts";

const folder = join(toolchain, `cuda-${pins.cuda}`);

export interface Cuda {
  driver: string | undefined; // its version
  devices: string[]; // "NVIDIA H200, 143771 MiB"
  compiler: string | undefined; // nvcc
}

/** The NVIDIA driver, its GPUs, and a CUDA compiler. */
export async function findCuda(pythonPackages: readonly string[]): Promise<Cuda> {
  const kernel = read("/proc/driver/nvidia/version");
  const listed = await ask("nvidia-smi", ["--query-gpu=driver_version,name,memory.total", "--format=csv,noheader"]);
  const rows = (listed ?? "").split("\n").filter((row) => row.includes(","));
  return {
    driver: rows[0]?.split(",")[0] ?? /Kernel Module(?: for \S+)?\s+(\S+)/.exec(kernel ?? "")?.[1],
    devices: rows.map((row) => row.split(",").slice(1).join(",").trim()),
    compiler: findNvcc(pythonPackages),
  };
}

/**
 * nvcc on the PATH, in CUDA_HOME, in pip's packages, or in the toolchain folder: the places of native/cmake/cuda.cmake.
 */
export function findNvcc(pythonPackages: readonly string[]): string | undefined {
  const homes = [process.env["CUDA_HOME"], process.env["CUDA_PATH"], "/usr/local/cuda"];
  const named = homes.filter((home) => home).map((home) => join(home!, "bin", "nvcc"));
  const wheels = pythonPackages.flatMap((folder) =>
    globSync("nvidia/{cu*,cuda_nvcc}/bin/nvcc", { cwd: folder }).map((file) => join(folder, file)),
  );
  const own = existsSync(toolchain) ? globSync("cuda-*/nvidia/cu*/bin/nvcc", { cwd: toolchain }).sort().reverse() : [];
  const installed = own.map((file) => join(toolchain, file));
  return which("nvcc") ?? [...named, ...wheels, ...installed].find((file) => existsSync(file));
}

function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}

/**
 * Installs the CUDA compiler from pip, without its dependencies: it compiles kernels where there is no CUDA toolkit.
 */
export async function installNvcc(progress: Progress): Promise<string> {
  const fill = async (partial: string) => {
    const wheels = ["nvidia-cuda-nvcc", "nvidia-nvvm", "nvidia-cuda-crt", "nvidia-cuda-runtime", "nvidia-cuda-cccl"];
    const pinned = wheels.map((wheel) => `${wheel}==${pins.cuda}.*`);
    await pipInstall(progress, partial, ["--no-deps", ...pinned]);
  };
  await installFolder(progress, folder, fill, { bytes: 1e9 });
  const nvcc = findNvcc([folder]);
  return requireComplete(nvcc !== undefined && existsSync(nvcc) ? nvcc : undefined, folder);
}
