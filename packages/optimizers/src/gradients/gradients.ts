import { anyCodec } from "./any-codec.ts";
import { dgc } from "./dgc.ts";
import { efSignsgd } from "./ef-signsgd.ts";
import { graddrop } from "./graddrop.ts";
import { lionSteps } from "./lion-steps.ts";
import { powersgd } from "./powersgd.ts";
import { qsgd } from "./qsgd.ts";
import { terngrad } from "./terngrad.ts";

/** Every compression of gradients by its name in recipes. */
export const gradientCompressions = {
  codec: anyCodec,
  "ef-signsgd": efSignsgd,
  qsgd,
  terngrad,
  graddrop,
  dgc,
  powersgd,
  "lion-steps": lionSteps,
} as const;
