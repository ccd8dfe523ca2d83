import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { pipInstall } from "./pip.ts";
import { findPython3, requirePython3 } from "./python3.ts";
import { libtorchRange, pins, withinReleases } from "./versions.ts";

export interface Libtorch {
  root: string; // holds lib/ and include/
  version: string;
  source: "LIBTORCH" | "python3" | "toolchain";
}

export type LibtorchSearch = { found: Libtorch | undefined; skipped: string[] };

const folder = join(toolchain, `libtorch-${pins.torch}`);

/**
 * libtorch from LIBTORCH, else the torch of python3, else the toolchain folder. An unusable torch of python3 is
 * skipped, with the reason. An unusable LIBTORCH is an error.
 */
export async function findLibtorch(): Promise<LibtorchSearch> {
  const named = process.env["LIBTORCH"];
  if (named) {
    const seen = inspect(resolve(named));
    if ("wrong" in seen)
      throw new StepFailed(
        `LIBTORCH=${named} ${seen.wrong}: unset it, or name a libtorch ${libtorchRange.from} to ${libtorchRange.to}.`,
      );
    return { found: { ...seen, source: "LIBTORCH" }, skipped: [] };
  }
  const skipped: string[] = [];
  const python = await findPython3();
  if (python?.torch !== undefined) {
    const seen = inspect(python.torch);
    if (!("wrong" in seen)) return { found: { ...seen, source: "python3" }, skipped };
    skipped.push(`the torch of ${python.executable} ${seen.wrong}`);
  }
  const own = inspect(join(folder, "torch"));
  return { found: "wrong" in own ? undefined : { ...own, source: "toolchain" }, skipped };
}

/**
 * Installs the wheel of torch without its dependencies, and the two CUDA libraries that its CUDA build needs to load:
 * enough for C++ on a CPU. Another package index may give a CPU build.
 */
export async function installLibtorch(progress: Progress): Promise<Libtorch> {
  await requirePython3();
  const fill = async (partial: string) => {
    const wheels = [
      `torch==${pins.torch}`,
      `nvidia-cuda-runtime==${pins.cudaRuntime}`,
      `nvidia-cuda-cupti==${pins.cudaCupti}`,
    ];
    await pipInstall(progress, partial, ["--no-deps", ...wheels]);
    const seen = inspect(join(partial, "torch"));
    if ("wrong" in seen)
      throw new StepFailed(`The wheel of torch ${pins.torch} ${seen.wrong}: name a libtorch in LIBTORCH instead.`);
  };
  await installFolder(progress, folder, fill, { bytes: 3e9 });
  return requireComplete((await findLibtorch()).found, folder);
}

/** The libtorch in a folder, or why it is unusable. */
export function inspect(root: string): { root: string; version: string } | { wrong: string } {
  const missing = ["lib/libtorch_cpu.so", "lib/libc10.so", "include/ATen/ATen.h"].find(
    (file) => !existsSync(join(root, file)),
  );
  if (missing !== undefined) return { wrong: `has no ${missing}` };
  const version = versionOf(root);
  if (version === undefined) return { wrong: "does not say its version" };
  if (!withinReleases(version, libtorchRange))
    return { wrong: `is ${version}, not ${libtorchRange.from} to ${libtorchRange.to}` };
  if (/_GLIBCXX_USE_CXX11_ABI=0/.test(read(root, "share/cmake/Torch/TorchConfig.cmake") ?? "")) {
    return { wrong: `${version} is built for the C++ ABI before 2011` };
  }
  return { root, version };
}

function versionOf(root: string): string | undefined {
  const python = /__version__ = '([^']+)'/.exec(read(root, "version.py") ?? "")?.[1];
  // The libtorch archives have this instead.
  const archive = read(root, "build-version") ?? read(root, "../build-version");
  const header = /TORCH_VERSION "([^"]+)"/.exec(
    read(root, "include/torch/headeronly/version.h") ??
      read(root, "include/torch/csrc/api/include/torch/version.h") ??
      "",
  )?.[1];
  return python ?? archive?.trim() ?? header;
}

function read(root: string, file: string): string | undefined {
  const path = join(root, file);
  return existsSync(path) ? readFileSync(path, "utf8") : undefined;
}
