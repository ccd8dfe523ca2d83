import { existsSync } from "node:fs";
import { join } from "node:path";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { pipInstall } from "./pip.ts";
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
  const fill = async (partial: string) => {
    const wheels = [`clang-format==${pins.clangFormat}`, `ruff==${pins.ruff}`];
    await pipInstall(progress, partial, ["--no-deps", ...wheels]);
  };
  await installFolder(progress, folder, fill);
  return requireComplete(findFormatters(), folder);
}
