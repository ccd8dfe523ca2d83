import { type Conflict, type Problem, parseOptions, type v, withoutConflicts } from "@terse/options";
import type { KeptOptions } from "./kept-options.ts";

type Schema = v.ObjectSchema<v.ObjectEntries, undefined>;

/**
 * What a file of algorithms/ or of gradients/ says of the one thing that it defines: its name in recipes, its options,
 * and how it is made.
 */
export interface Definition<S extends Schema, Made extends object> {
  readonly name: string;
  readonly options: S;
  /** One sentence for help and documents about each option that only this method has. */
  readonly sentences?: Readonly<Record<string, string>>;
  /** Options that have no effect beside others, or contradict them. */
  readonly conflicts?: readonly Conflict<v.InferOutput<S>>[];
  /** Options that a run keeps when it goes on from a save. */
  readonly kept?: KeptOptions<v.InferOutput<S>>;
  /** How the options fit into a run of so many steps. */
  readonly inRun?: (options: v.InferOutput<S>, steps: number) => InRun<v.InferOutput<S>>;
  /** Problems of this compression under an algorithm with its options. */
  readonly under?: (
    options: v.InferOutput<S>,
    algorithm: { readonly name: string; readonly options: object },
  ) => Problem[];
  /** How the options of this compression fit into the rounds of local steps. */
  readonly inRounds?: (options: v.InferOutput<S>, run: RunOfRounds) => InRounds<v.InferOutput<S>>;
  /** Why so many ranks cannot share a round. The path is that of a recipe. */
  readonly amongRanks?: (options: v.InferOutput<S>, ranks: number) => Problem | undefined;
  /** What a rank takes that steps alone, for a method whose point is what it sends. */
  readonly alone?: Alone<v.InferOutput<S>>;
  /** Options with which its first steps are as those after its warm-up. */
  readonly afterWarmup?: Readonly<Record<string, unknown>>;
  /** The option by which ranks take steps of their own, where it is not 1: their parameters differ until all meet. */
  readonly ownSteps?: { readonly option: string; readonly of: string };
  /** The option that chooses the width of the sums of its votes or levels. */
  readonly widthOfSums?: string;
  create(options: v.InferOutput<S>, where: string): Made;
}

export interface Alone<Options> {
  readonly is: string; // the name of another method
  /** Options that mean nothing then. */
  problems?(options: Options): readonly Problem[];
}

/** Options in a run. Paths of problems are options. */
export interface InRun<Options> {
  /** Options that were given as a share of the run, in steps. */
  readonly options?: Partial<Options>;
  /** Why the run would not be what was asked for. */
  readonly problems?: readonly Problem[];
  /** Options that have no effect in so short a run. */
  readonly remarks?: readonly Problem[];
  /** Numbers of steps after which something is sent again that other steps do not send. */
  readonly periods?: readonly number[];
  /** The values that a plan assumes for options which the run itself finds, and a remark about them. */
  readonly assumed?: { readonly options: Partial<Options>; readonly remark?: Problem };
}

/** What a compression may ask of the run whose rounds it carries, as a recipe has it. */
export interface RunOfRounds {
  /** Absent where ranks take no local steps. */
  readonly local?: { readonly syncEvery: number; readonly alpha: number; readonly rebase: boolean } | null | undefined;
  /** Steps to the next round, where a run goes on between two rounds: more than syncEvery where that has changed. */
  readonly toNext?: number | undefined;
  readonly schedule: { readonly name: string; readonly warmup: number };
  /** The optimizer of local steps. */
  readonly optimizer: {
    readonly name: string;
    readonly lr: number;
    readonly weightDecay?: number;
    readonly groups: readonly object[];
  };
}

export interface InRounds<Options> {
  /** Options that follow from the run, unless they are given. */
  readonly options?: Partial<Options>;
  /** Why the run would not be what was asked for. Paths are those of a recipe. */
  readonly problems?: readonly Problem[];
}

/** Makes an algorithm or a compression from its options; with the properties of its definition. */
export type Method<S extends Schema, Made extends object> = Omit<Definition<S, Made>, "create" | "conflicts"> &
  ((...given: Arguments<S>) => Named<Made>);

/** The result of `create`, with its definition's name, and with `where`, which precedes its options in errors. */
export type Named<Made> = Made & { readonly name: string; readonly where: string };

type Arguments<S extends Schema> =
  Record<never, never> extends v.InferInput<S>
    ? [options?: v.InferInput<S>, where?: string]
    : [options: v.InferInput<S>, where?: string];

/**
 * The method of a definition. It takes options, and what stands before them in errors: its name unless given, or the
 * key of a recipe's section. It throws OptionsError for options that it does not know, that are out of bounds, or that
 * conflict.
 */
export function define<S extends Schema, Made extends object>(definition: Definition<S, Made>): Method<S, Made> {
  const { create, conflicts = [], ...properties } = definition;
  const method = (options?: unknown, where = definition.name) => {
    const given = withoutConflicts(parseOptions(definition.options, options, where), conflicts, where);
    return { name: definition.name, where, ...create(given, where) };
  };
  for (const [key, value] of Object.entries(properties))
    Object.defineProperty(method, key, { value, enumerable: true });
  return method as unknown as Method<S, Made>;
}
