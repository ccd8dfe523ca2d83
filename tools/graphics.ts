import { existsSync, globSync, readFileSync, realpathSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isBuilt } from "./native.ts";
import { ask } from "./run.ts";
import { root, toolchain } from "./toolchain.ts";
import { which } from "./which.ts";

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

/** nvcc on the PATH, under CUDA_HOME, among pip's packages, or in the toolchain folder: as native/cmake/cuda.cmake looks. */
export function findNvcc(pythonPackages: readonly string[]): string | undefined {
  const homes = [process.env["CUDA_HOME"], process.env["CUDA_PATH"], "/usr/local/cuda"];
  const named = homes.filter((home) => home).map((home) => join(home!, "bin", "nvcc"));
  const wheels = pythonPackages.flatMap((folder) =>
    globSync("nvidia/{cu*,cuda_nvcc}/bin/nvcc", { cwd: folder }).map((file) => join(folder, file)),
  );
  const own = existsSync(toolchain) ? globSync("cuda-*/nvidia/cu*/bin/nvcc", { cwd: toolchain }).sort().reverse() : [];
  const brought = own.map((file) => join(toolchain, file));
  return which("nvcc") ?? [...named, ...wheels, ...brought].find((file) => existsSync(file));
}

export interface Nccl {
  path: string;
  version: string | undefined;
}

/** What the engine nccl says of itself; undefined where its addon is not built. */
export async function askNcclEngine(
  libtorch: string | undefined,
): Promise<{ available: boolean; reason: string; version?: string; path?: string } | undefined> {
  if (!isBuilt("collectives")) return undefined;
  const addon = pathToFileURL(join(root, "native", "collectives", "src", "index.ts")).href;
  const question = `const { collectives } = await import(${JSON.stringify(addon)}); console.log(JSON.stringify(collectives().ncclStatus()));`;
  const flags = ["--conditions=@terse/source", "--input-type=module", "-e", question];
  const env = libtorch === undefined ? {} : { LIBTORCH: libtorch };
  const answer = await ask(process.execPath, flags, { env });
  return answer?.startsWith("{") ? JSON.parse(answer) : undefined;
}

/** libnccl.so.2 as TERSE_NCCL names it, where dlopen finds it, else in a pip wheel. */
export async function findNccl(pythonPackages: readonly string[]): Promise<Nccl | undefined> {
  const searched = (process.env["LD_LIBRARY_PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const cache = (await ask("/sbin/ldconfig", ["-p"])) ?? "";
  const cached = /libnccl\.so\.2 .*=> (\S+)/.exec(cache)?.[1];
  const wheels = pythonPackages.map((folder) => join(folder, "nvidia", "nccl", "lib"));
  const folders = [...searched, ...(cached ? [dirname(cached)] : []), ...wheels];
  const named = process.env["TERSE_NCCL"] ? [process.env["TERSE_NCCL"]] : undefined;
  const files = named ?? folders.map((folder) => join(folder, "libnccl.so.2"));
  const path = files.find((file) => existsSync(file));
  if (path === undefined) return undefined;
  const wheel = globSync("nvidia_nccl_cu*.dist-info", { cwd: join(dirname(path), "..", "..", "..") })[0];
  const version =
    /libnccl\.so\.(\d+\.\d+\.\d+)/.exec(realpathSync(path))?.[1] ?? /-(\d[\d.]*)\.dist-info/.exec(wheel ?? "")?.[1];
  return { path, version };
}

function read(path: string): string | undefined {
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
