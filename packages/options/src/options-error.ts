/** A recipe, a command line or an options object is wrong. The message has one line per problem. */
export class OptionsError extends Error {
  override readonly name = "OptionsError";
  /** One line each, which starts with the dotted path of the option. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}
