import { adamw, adamwOptions } from "./adamw.ts";
import { distributedLion, distributedLionOptions } from "./distributed-lion.ts";
import { lion, lionOptions } from "./lion.ts";
import { lionCub, lionCubOptions } from "./lion-cub.ts";

interface CpuOnlyOptions {
  readonly [option: string]: unknown;
  readonly bits?: number | undefined;
  readonly zero?: string | undefined;
  readonly momentumSync?: { readonly segments?: unknown } | undefined;
}

const sendsFloats = (name: string) => () => `${name} sends floats, where lion-cub and distributed-lion send votes`;

const quantizes = ({ bits = 1 }: CpuOnlyOptions) =>
  bits > 1 ? "more than one bit is quantized on the CPU (one bit is not: optimizer.bits: 1)" : undefined;

const sendsZeros = ({ zero }: CpuOnlyOptions) =>
  zero === "hold" ? "exact zeros are encoded on the CPU (turn that off by another optimizer.zero)" : undefined;

const averagesMomenta = ({ momentumSync }: CpuOnlyOptions) =>
  (momentumSync?.segments ?? "none") !== "none"
    ? "momenta are averaged as floats (turn that off by optimizer.momentumSync.segments: none)"
    : undefined;

/**
 * Every algorithm by its name in recipes, with its options. `cpuOnly` returns why it cannot run on a GPU with these options, where only
 * votes leave the GPU; undefined where it can.
 */
export const algorithms = {
  adamw: { options: adamwOptions, create: adamw, cpuOnly: sendsFloats("adamw") },
  lion: { options: lionOptions, create: lion, cpuOnly: sendsFloats("lion") },
  "distributed-lion": {
    options: distributedLionOptions,
    create: distributedLion,
    cpuOnly: (options: CpuOnlyOptions) => sendsZeros(options) ?? averagesMomenta(options),
  },
  "lion-cub": {
    options: lionCubOptions,
    create: lionCub,
    cpuOnly: (options: CpuOnlyOptions) => quantizes(options) ?? averagesMomenta(options),
  },
} as const;
