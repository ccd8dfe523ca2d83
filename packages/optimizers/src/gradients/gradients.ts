import { anyCodec, anyCodecKept, anyCodecOptions } from "./any-codec.ts";
import { dgc, dgcKept, dgcOptions } from "./dgc.ts";
import { efSignsgd, efSignsgdOptions } from "./ef-signsgd.ts";
import { graddrop, graddropKept, graddropOptions } from "./graddrop.ts";
import { powersgd, powersgdKept, powersgdOptions } from "./powersgd.ts";
import { qsgd, qsgdOptions } from "./qsgd.ts";
import { terngrad, terngradKept, terngradOptions } from "./terngrad.ts";

/** Every compression of gradients by its name in recipes, with its options, and those of them that a resumed run keeps. */
export const gradientCompressions = {
  codec: { options: anyCodecOptions, kept: anyCodecKept, create: anyCodec },
  "ef-signsgd": { options: efSignsgdOptions, create: efSignsgd },
  qsgd: { options: qsgdOptions, create: qsgd },
  terngrad: { options: terngradOptions, kept: terngradKept, create: terngrad },
  graddrop: { options: graddropOptions, kept: graddropKept, create: graddrop },
  dgc: { options: dgcOptions, kept: dgcKept, create: dgc },
  powersgd: { options: powersgdOptions, kept: powersgdKept, create: powersgd },
} as const;
