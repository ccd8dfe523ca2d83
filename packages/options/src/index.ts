/**
 * Parses and checks options: one schema gives the types, the defaults and the error messages. Prints text of others
 * safely.
 */
export { applyOverrides } from "./apply-overrides.ts";
export { choose } from "./choose.ts";
export { type Conflict, withoutConflicts } from "./conflicts.ts";
export { show } from "./describe.ts";
export { type DroppedOptions, dropUntaken } from "./drop-untaken.ts";
export { endSignals } from "./end-signals.ts";
export { type ListedOption, listOptions } from "./list-options.ts";
export { editDistance, nearest, ownWord } from "./nearest.ts";
export { lineOf, OptionsError, type Problem } from "./options-error.ts";
export {
  endingIn,
  type FlagReader,
  numberFrom,
  type ParsedArguments,
  parseArguments,
  type Syntax,
  wholeNumberFrom,
  wordOf,
} from "./parse-arguments.ts";
export { parseOptions } from "./parse-options.ts";
export { linesOfError, print, printable, printableLine, printText } from "./print.ts";
export {
  finite,
  flag,
  fraction,
  nonNegative,
  nonNegativeFloat,
  nonNegativeInteger,
  oneOf,
  positive,
  positiveFloat,
  positiveInteger,
  text,
  unitInterval,
  unitIntervalFloat,
} from "./schemas.ts";
export { columnsOf, fitted, hasStyles, isTerminal } from "./terminal-line.ts";
export { watchOutput } from "./watch-output.ts";
export { parseYaml, parseYamlValue } from "./yaml.ts";

// valibot itself, so that every package writes its schemas with the version that is used here.
import * as v from "valibot";

export { v };
