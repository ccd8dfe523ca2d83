import { adamw, adamwOptions } from "./adamw.ts";
import { distributedLion, distributedLionOptions } from "./distributed-lion.ts";
import { lamb, lambOptions } from "./lamb.ts";
import { lion, lionOptions } from "./lion.ts";
import { lionCub, lionCubOptions } from "./lion-cub.ts";
import { oneBitAdam, oneBitAdamOptions } from "./one-bit-adam.ts";
import { lambBasicOneBit, lambBasicOneBitOptions, oneBitLamb, oneBitLambOptions } from "./one-bit-lamb.ts";
import { sgd, sgdOptions } from "./sgd.ts";
import { signsgd, signsgdOptions, signum, signumOptions } from "./signum.ts";

interface CpuOnlyOptions {
  readonly [option: string]: unknown;
  readonly bits?: number | undefined;
  readonly sumBits?: number | undefined;
  readonly zero?: string | undefined;
  readonly momentumSync?: { readonly segments?: unknown } | undefined;
}

const sendsFloats = (name: string) => () =>
  `${name} sends floats, where lion-cub, distributed-lion and signum send votes`;

const quantizes = ({ bits = 1, sumBits }: CpuOnlyOptions) =>
  bits > 1 || sumBits !== undefined
    ? "more than one bit is quantized on the CPU (one bit is not: optimizer.bits: 1)"
    : undefined;

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
  sgd: { options: sgdOptions, create: sgd, cpuOnly: sendsFloats("sgd") },
  signsgd: { options: signsgdOptions, create: signsgd, cpuOnly: () => undefined },
  signum: { options: signumOptions, create: signum, cpuOnly: () => undefined },
  adamw: { options: adamwOptions, create: adamw, cpuOnly: sendsFloats("adamw") },
  lion: { options: lionOptions, create: lion, cpuOnly: sendsFloats("lion") },
  lamb: { options: lambOptions, create: lamb, cpuOnly: sendsFloats("lamb") },
  "one-bit-adam": { options: oneBitAdamOptions, create: oneBitAdam, cpuOnly: sendsFloats("one-bit-adam") },
  "lamb-basic-one-bit": {
    options: lambBasicOneBitOptions,
    create: lambBasicOneBit,
    cpuOnly: sendsFloats("lamb-basic-one-bit"),
  },
  "one-bit-lamb": { options: oneBitLambOptions, create: oneBitLamb, cpuOnly: sendsFloats("one-bit-lamb") },
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
