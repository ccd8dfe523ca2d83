import { existsSync, mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { findOrInstallPip, pipInstall } from "./pip.ts";
import { requirePython3 } from "./python3.ts";
import { pins } from "./versions.ts";

/** The programs that format what biome does not: C, C++ and CUDA, and Python. */
export interface Formatters {
  clangFormat: string;
  ruff: string;
}

const folder = join(toolchain, `formatters-${pins.clangFormat}-${pins.ruff}`);

export function findFormatters(): Formatters | undefined {
  const [clangFormat, ruff] = [join(folder, "clang_format/data/bin/clang-format"), join(folder, "bin/ruff")];
  return existsSync(clangFormat) && existsSync(ruff) ? { clangFormat, ruff } : undefined;
}

export async function installFormatters(progress: Progress): Promise<Formatters> {
  await requirePython3();
  mkdirSync(toolchain, { recursive: true });
  const pip = await findOrInstallPip(progress);
  const fill = async (partial: string) => {
    const scratch = join(partial, ".scratch");
    mkdirSync(scratch);
    const wheels = [`clang-format==${pins.clangFormat}`, `ruff==${pins.ruff}`];
    await pipInstall(progress, pip, partial, scratch, ["--no-deps", ...wheels]);
    rmSync(scratch, { recursive: true });
  };
  await installFolder(folder, fill, () => progress.say("another process is installing them"));
  return requireComplete(findFormatters(), folder);
}
