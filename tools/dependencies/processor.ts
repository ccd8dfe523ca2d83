import { existsSync, readFileSync } from "node:fs";
import { cpus, totalmem } from "node:os";
import { availableProcessors } from "../../native/loader/src/available-processors.ts";

export interface Processor {
  model: string;
  cores: number;
  memoryBytes: number;
  simd: string; // the instructions that kernels can use: "avx512", "avx2", "neon" or "scalar"
}

export function findProcessor(): Processor {
  const info = existsSync("/proc/cpuinfo") ? readFileSync("/proc/cpuinfo", "utf8") : "";
  return {
    model: cpus()[0]?.model ?? process.arch,
    cores: availableProcessors(),
    memoryBytes: totalmem(),
    simd: simdLevel(info),
  };
}

/** The widest instruction set in /proc/cpuinfo that kernels are written for. */
export function simdLevel(cpuInfo: string): string {
  const flags = new Set(/^(?:flags|Features)\s*:(.*)$/m.exec(cpuInfo)?.[1]?.trim().split(/\s+/));
  const has = (...names: string[]) => names.every((name) => flags.has(name));
  if (has("avx512f", "avx512bw", "avx512vl", "avx512dq")) return "avx512";
  if (has("avx2")) return "avx2";
  if (has("asimd")) return "neon";
  return "scalar";
}
