import { anyCodec, anyCodecOptions } from "./any-codec.ts";
import { dgc, dgcOptions } from "./dgc.ts";
import { efSignsgd, efSignsgdOptions } from "./ef-signsgd.ts";
import { graddrop, graddropOptions } from "./graddrop.ts";
import { powersgd, powersgdOptions } from "./powersgd.ts";
import { qsgd, qsgdOptions } from "./qsgd.ts";
import { terngrad, terngradOptions } from "./terngrad.ts";

/** Every compression of gradients by its name in recipes, with its options. */
export const gradientCompressions = {
  codec: { options: anyCodecOptions, create: anyCodec },
  "ef-signsgd": { options: efSignsgdOptions, create: efSignsgd },
  qsgd: { options: qsgdOptions, create: qsgd },
  terngrad: { options: terngradOptions, create: terngrad },
  graddrop: { options: graddropOptions, create: graddrop },
  dgc: { options: dgcOptions, create: dgc },
  powersgd: { options: powersgdOptions, create: powersgd },
} as const;
