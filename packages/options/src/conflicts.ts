import { OptionsError } from "./options-error.ts";

/** Where an option has no effect, or contradicts the others: a line "option: because; remedy". */
export interface Conflict<Options> {
  readonly option: keyof Options & string;
  readonly when: (options: Options) => boolean;
  readonly because: (options: Options) => string;
  readonly remedy: string | ((options: Options) => string);
}

/**
 * The options, unless they conflict: then OptionsError with a line for each, which begins with `where` and the option.
 */
export function withoutConflicts<Options>(
  options: Options,
  conflicts: readonly Conflict<Options>[],
  where: string,
): Options {
  const problems = conflicts
    .filter(({ when }) => when(options))
    .map(({ option, because, remedy }) => ({
      path: `${where}.${option}`,
      problem: because(options),
      remedy: typeof remedy === "string" ? remedy : remedy(options),
    }));
  if (problems.length > 0) throw new OptionsError(problems);
  return options;
}
