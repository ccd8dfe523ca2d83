/** The highest learning rate in every step after the warm-up. */
import { v } from "@terse/options";
import type { Schedule } from "./schedule.ts";

const options = v.object({});

export const constant: Schedule<v.InferOutput<typeof options>> = { options, share: () => 1 };
