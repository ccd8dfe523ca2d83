/** The options of an `Optimizer`, and their checks. */
import type { Group } from "@terse/collectives";
import type { ChosenSchemes, Measured } from "@terse/exchange";
import { nonNegative, nonNegativeFloat, nonNegativeInteger, oneOf, parseOptions, positive, v } from "@terse/options";
import type { Algorithm } from "./algorithms/algorithm.ts";
import { type ClipBy, clipBys } from "./clipping/clipping.ts";
import type { FlatParameters } from "./flat-parameters.ts";
import type { Parallel } from "./mesh.ts";
import type { ParameterGroup } from "./parameter-groups.ts";

/** The options of an `Optimizer`. Only `algorithm` is required. */
export interface OptimizerOptions {
  algorithm: Algorithm;
  /** The first group that matches a segment takes it; the others go to `algorithm`. */
  groups?: readonly ParameterGroup[];
  /**
   * The ranks as data × weight, whose product is their number. The ranks along the weight axis share the state of the
   * algorithms that can be sharded (dion); all other algorithms work as without it. All ranks along the data axis
   * unless given.
   */
  parallel?: Parallel;
  /**
   * Largest Euclidean norm of the gradient: of the mean for algorithms that average it, of a rank's own otherwise. 0:
   * none.
   */
  clip?: number;
  /**
   * The norm that clips: that of the whole gradient ("global", the default); that of each bucket ("bucket"); or an
   * estimate of the whole norm from the part that has left and the shares of the step before ("previous"), which lets
   * votes leave while backward runs (clipping.ts).
   */
  clipBy?: ClipBy;
  /**
   * Whether buckets leave while backward still runs (`begin`): "auto" where the method allows it, "on" or an error that
   * says what prevents it. "off" (the default) gives the same parameters bit for bit.
   */
  overlap?: "auto" | "on" | "off";
  /**
   * The least number of elements in a bucket: by default a sixteenth of the model and at least 256 Ki, or the whole
   * model for a single rank. "auto" begins with that, and after a few steps takes the size that leaves the least to
   * wait for, from the time of backward and the cost of the network (`bucketing` tells it). Votes do not depend on it,
   * but for those with logarithmic levels. Means of three ranks and more are added in another order, which shows in
   * their last bits; those in int8 are rounded otherwise, because blocks begin with a bucket.
   */
  bucket?: number | "auto";
  /** The result of `measureLink` on the group, for `bucket: "auto"`, which otherwise measures for itself. */
  measured?: Measured;
  /** The schemes of votes and means; the standard ones unless given. Their groups are closed with the optimizer. */
  schemes?: Partial<ChosenSchemes>;
  /** Compare the parameters' fingerprints across ranks after every so many steps; 0 never. Default 100. */
  compareEvery?: number;
}

/** A value that is `expected`, which the error of any other one says, and of none. */
const that = (isRight: (value: unknown) => boolean, expected: string) =>
  v.optional(v.custom(isRight, `expected ${expected}`), null as never);

const algorithm = that(
  (value) =>
    ["init", "step", "messages"].every((name) => typeof (value as Algorithm | null)?.[name as "init"] === "function"),
  "an algorithm, as adamw() and lionCub() make them",
);
const match = that(
  (value) => typeof value === "function",
  'a function of a segment, such as ({ role }) => role === "norm"',
);

const scheme = (maker: string) =>
  v.optional(
    v.custom((value) => typeof value === "object" && value !== null, `expected a scheme, as ${maker} makes it`),
  );
const any = v.optional(v.any());
const schema = v.object({
  algorithm,
  groups: v.optional(v.array(v.object({ match, algorithm, lrFactor: v.optional(nonNegativeFloat) }))),
  parallel: v.optional(v.object({ data: any, weight: any })), // whose product meshOf checks
  clip: v.optional(nonNegative),
  clipBy: v.optional(oneOf(clipBys)),
  overlap: v.optional(oneOf(["auto", "on", "off"])),
  bucket: v.optional(v.union([positive, v.literal("auto")])),
  measured: any,
  schemes: v.optional(
    v.object({ votes: scheme("voteSchemes"), means: scheme("dense()"), computed: v.optional(v.string()) }),
  ),
  compareEvery: v.optional(nonNegativeInteger),
});

/** TypeError or OptionsError for what no optimizer can work with, and for an option that is unknown. */
export function checkArguments(flat: FlatParameters, group: Group, options: OptimizerOptions): void {
  if (!Array.isArray(flat?.segments))
    throw new TypeError("Optimizer: the first argument must be an arena; make one of the model, new Arena(model)");
  if (typeof group?.size !== "number")
    throw new TypeError("Optimizer: the second argument must be one group, as joinWorld() or loopback(1)[0] give it");
  parseOptions(schema, options, "Optimizer");
}
