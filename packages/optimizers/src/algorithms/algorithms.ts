import { adamw, adamwOptions } from "./adamw.ts";
import { demo, demoOptions } from "./demo.ts";
import { dion } from "./dion.ts";
import { dionKept, dionOptions } from "./dion-options.ts";
import { distributedLion, distributedLionKept, distributedLionOptions } from "./distributed-lion.ts";
import { lamb, lambOptions } from "./lamb.ts";
import { lion, lionOptions } from "./lion.ts";
import { lionCub } from "./lion-cub.ts";
import { lionCubKept, lionCubOptions } from "./lion-cub-options.ts";
import { muon, muonOptions } from "./muon.ts";
import { oneBitAdam, oneBitAdamKept, oneBitAdamOptions } from "./one-bit-adam.ts";
import {
  lambBasicOneBit,
  lambBasicOneBitKept,
  lambBasicOneBitOptions,
  oneBitLamb,
  oneBitLambKept,
  oneBitLambOptions,
} from "./one-bit-lamb.ts";
import { sgd, sgdKept, sgdOptions } from "./sgd.ts";
import { signsgd, signsgdOptions, signum, signumOptions } from "./signum.ts";
import { zeroOneAdam, zeroOneAdamKept, zeroOneAdamOptions } from "./zero-one-adam.ts";

/** Every algorithm by its name in recipes, with its options, and those of them that a resumed run keeps. */
export const algorithms = {
  sgd: { options: sgdOptions, kept: sgdKept, create: sgd },
  signsgd: { options: signsgdOptions, create: signsgd },
  signum: { options: signumOptions, create: signum },
  adamw: { options: adamwOptions, create: adamw },
  lion: { options: lionOptions, create: lion },
  lamb: { options: lambOptions, create: lamb },
  "one-bit-adam": { options: oneBitAdamOptions, kept: oneBitAdamKept, create: oneBitAdam },
  "lamb-basic-one-bit": { options: lambBasicOneBitOptions, kept: lambBasicOneBitKept, create: lambBasicOneBit },
  "one-bit-lamb": { options: oneBitLambOptions, kept: oneBitLambKept, create: oneBitLamb },
  "distributed-lion": { options: distributedLionOptions, kept: distributedLionKept, create: distributedLion },
  "lion-cub": { options: lionCubOptions, kept: lionCubKept, create: lionCub },
  muon: { options: muonOptions, create: muon },
  dion: { options: dionOptions, kept: dionKept, create: dion },
  "zero-one-adam": { options: zeroOneAdamOptions, kept: zeroOneAdamKept, create: zeroOneAdam },
  demo: { options: demoOptions, create: demo },
} as const;
