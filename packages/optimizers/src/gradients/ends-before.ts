import type { Problem } from "@terse/options";

/**
 * The problems of options that name the step at which the compression begins, where a run of `steps` ends before it.
 */
export const endsBefore = (steps: number, options: Readonly<Record<string, number>>): Problem[] =>
  Object.entries(options).flatMap(([path, length]) =>
    length > 0 && length >= steps
      ? {
          path,
          problem: `${length}, and the run has ${steps} steps, so it would end before the gradients are compressed as asked`,
          remedy: "take fewer, or more steps",
        }
      : [],
  );
