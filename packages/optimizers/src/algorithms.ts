import { adamw, adamwOptions } from "./adamw.ts";
import { distributedLion, distributedLionOptions } from "./distributed-lion.ts";
import { lion, lionOptions } from "./lion.ts";
import { lionCub, lionCubOptions } from "./lion-cub.ts";

/** Every algorithm by the name that recipes use, with the options it takes. */
export const algorithms = {
  adamw: { options: adamwOptions, create: adamw },
  lion: { options: lionOptions, create: lion },
  "distributed-lion": { options: distributedLionOptions, create: distributedLion },
  "lion-cub": { options: lionCubOptions, create: lionCub },
} as const;
