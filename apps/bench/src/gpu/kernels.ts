/**
 * The kernels of codecs and of optimizers. Their check programs, which native/cuda/on-device.sh builds, time them by
 * the device's clock: medians of 21 calls.
 *
 *   over_copy    bytes that the work must read and write at least / its time, ÷ the same of a copy on the device
 *   over_torch   our time ÷ PyTorch's for the same work (peers/gpu_kernels.py)
 */
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import type { Measurement } from "../measurement.ts";
import { Peer } from "../peer.ts";

/** Floats in 2²⁰. A vector of 64 Mi has 1024 chunks for sums, too few for all multiprocessors. */
const sizes = [64, 256];
const noGpu = 77;

/** By our case, PyTorch's work in peers/gpu_kernels.py. */
const twins: Readonly<Record<string, string>> = {
  "adamw step": "adamw",
  "sgd step": "sgd",
  "lion step": "lion",
  "low-rank update, rank 64": "low-rank",
  "sum of squares": "sum-of-squares",
  "bf16 encode": "bf16",
  "bf16 decode": "bf16-add",
  "f16 encode": "f16",
  "f16 decode": "f16-add",
  "top-k, 1 of 1000 encode": "top-k-1000",
  "top-k, 1 of 100 encode": "top-k-100",
};

export const kernelsOfCodecs = () => kernels("codecs");
export const kernelsOfOptimizers = () => kernels("optimizers");

async function* kernels(of: "codecs" | "optimizers"): AsyncGenerator<Measurement> {
  const program = fileURLToPath(new URL(`../../../../native/cuda/build/${of}/${of}_cuda_check`, import.meta.url));
  if (!existsSync(program)) throw new Error(`${program} is not built: run native/cuda/on-device.sh`);
  for (const size of sizes) {
    const ours = await timed(program, size);
    if (typeof ours === "string") {
      process.stderr.write(`${of} is left out: ${ours}\n`);
      return;
    }
    await using peer = await Peer.start("gpu_kernels.py", [String(size)]);
    for (const line of ours) {
      const inCase = { case: `${line.case}, ${size} Mi floats` };
      yield { ...line, ...inCase };
      const twin = twins[line.case];
      if (twin === undefined || line.metric !== "milliseconds") continue;
      const { milliseconds } = await peer.ask<{ milliseconds: number }>(twin);
      yield { ...inCase, metric: "torch_milliseconds", value: milliseconds, unit: "ms" };
      yield { ...inCase, metric: "over_torch", value: line.value / milliseconds, unit: "ratio" };
    }
  }
}

/** The program's lines, or why it measures nothing here. */
async function timed(program: string, size: number): Promise<Measurement[] | string> {
  try {
    const { stdout } = await promisify(execFile)(program, ["bench", String(size)]);
    return stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: unknown; stdout?: string; stderr?: string };
    if (code === noGpu) return stdout!.trim();
    throw new Error(`${program} bench ${size}: ${stderr || stdout || error}`.trim());
  }
}
