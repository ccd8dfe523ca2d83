/** What somebody wrote in a recipe, a flag or an options object is wrong; the message has one line per problem. */
export class OptionsError extends Error {
  override readonly name = "OptionsError";
  /** One sentence each, starting with the dotted path of the option. */
  readonly problems: readonly string[];

  constructor(problems: readonly string[]) {
    super(problems.join("\n"));
    this.problems = problems;
  }
}
