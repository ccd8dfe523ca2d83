import { adamw, adamwOptions } from "./adamw.ts";
import { demo, demoOptions } from "./demo.ts";
import { dion } from "./dion.ts";
import { dionOptions } from "./dion-options.ts";
import { distributedLion, distributedLionOptions } from "./distributed-lion.ts";
import { lamb, lambOptions } from "./lamb.ts";
import { lion, lionOptions } from "./lion.ts";
import { lionCub, lionCubOptions } from "./lion-cub.ts";
import { muon, muonOptions } from "./muon.ts";
import { oneBitAdam, oneBitAdamOptions } from "./one-bit-adam.ts";
import { lambBasicOneBit, lambBasicOneBitOptions, oneBitLamb, oneBitLambOptions } from "./one-bit-lamb.ts";
import { sgd, sgdOptions } from "./sgd.ts";
import { signsgd, signsgdOptions, signum, signumOptions } from "./signum.ts";
import { zeroOneAdam, zeroOneAdamOptions } from "./zero-one-adam.ts";

/** Every algorithm by its name in recipes, with its options. */
export const algorithms = {
  sgd: { options: sgdOptions, create: sgd },
  signsgd: { options: signsgdOptions, create: signsgd },
  signum: { options: signumOptions, create: signum },
  adamw: { options: adamwOptions, create: adamw },
  lion: { options: lionOptions, create: lion },
  lamb: { options: lambOptions, create: lamb },
  "one-bit-adam": { options: oneBitAdamOptions, create: oneBitAdam },
  "lamb-basic-one-bit": { options: lambBasicOneBitOptions, create: lambBasicOneBit },
  "one-bit-lamb": { options: oneBitLambOptions, create: oneBitLamb },
  "distributed-lion": { options: distributedLionOptions, create: distributedLion },
  "lion-cub": { options: lionCubOptions, create: lionCub },
  muon: { options: muonOptions, create: muon },
  dion: { options: dionOptions, create: dion },
  "zero-one-adam": { options: zeroOneAdamOptions, create: zeroOneAdam },
  demo: { options: demoOptions, create: demo },
} as const;
