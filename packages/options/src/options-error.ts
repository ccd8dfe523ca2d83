/** What is wrong with one option. */
export interface Problem {
  /** Its dotted path, "optimizer.lr". */
  readonly path: string;
  readonly problem: string;
  /** What to do. */
  readonly remedy?: string | undefined;
}

/**
 * A recipe, a command line or an options object is wrong. The message has a line for each problem, "path: problem;
 * remedy".
 */
export class OptionsError extends Error {
  override readonly name = "OptionsError";
  readonly problems: readonly (Problem | string)[];

  /** A string is a line as it is, of no single option. */
  constructor(problems: readonly (Problem | string)[]) {
    super(problems.map(lineOf).join("\n"));
    this.problems = problems;
  }

  get lines(): string[] {
    return this.problems.map(lineOf);
  }

  /** An error with the same problems, whose paths are changed. */
  withPaths(change: (path: string) => string): OptionsError {
    return new OptionsError(
      this.problems.map((each) => (typeof each === "string" ? each : { ...each, path: change(each.path) })),
    );
  }

  /**
   * An error with the same problems, of options that stand in this section of a recipe: "gpt.heads" is "model.heads".
   */
  inSection(section: string): OptionsError {
    return this.withPaths((path) => [section, ...path.split(".").slice(1)].join("."));
  }
}

/** "path: problem; remedy" */
export function lineOf(problem: Problem | string): string {
  if (typeof problem === "string") return problem;
  const { path, problem: what, remedy } = problem;
  return `${path}: ${what}${remedy === undefined ? "" : `; ${remedy}`}`;
}
