import { adamw } from "./adamw.ts";
import { demo } from "./demo.ts";
import { dion } from "./dion.ts";
import { distributedLion } from "./distributed-lion.ts";
import { lamb } from "./lamb.ts";
import { lion } from "./lion.ts";
import { lionCub } from "./lion-cub.ts";
import { muon } from "./muon.ts";
import { oneBitAdam } from "./one-bit-adam.ts";
import { lambBasicOneBit, oneBitLamb } from "./one-bit-lamb.ts";
import { sgd } from "./sgd.ts";
import { signMuon } from "./sign-muon.ts";
import { signsgd, signum } from "./signum.ts";
import { zeroOneAdam } from "./zero-one-adam.ts";

/** Every algorithm by its name in recipes. */
export const algorithms = {
  sgd,
  signsgd,
  signum,
  adamw,
  lion,
  lamb,
  "one-bit-adam": oneBitAdam,
  "lamb-basic-one-bit": lambBasicOneBit,
  "one-bit-lamb": oneBitLamb,
  "distributed-lion": distributedLion,
  "lion-cub": lionCub,
  muon,
  "sign-muon": signMuon,
  dion,
  "zero-one-adam": zeroOneAdam,
  demo,
} as const;
