/**
 * Parameter groups of a recipe: which optimizer a parameter gets, with which learning rate and weight decay, by its
 * role or its name.
 *
 *   optimizer:
 *     name: lion-cub
 *     lr: 3e-4
 *     noDecay: [norm, vector]
 *     groups:
 *       - { roles: [embedding, head], name: adamw, lr: 2e-3 }
 *       - { parameters: "blocks.0.*", name: lion, weightDecay: 0.1 }
 *
 * The first group that matches a parameter takes it; the others belong to `optimizer.name`. All follow one schedule.
 */
import {
  type Algorithm,
  algorithms,
  compressed,
  type Definition,
  type GradientCompression,
  gradientCompressions,
  matrixShape,
  type ParameterGroup,
} from "@terse/optimizers";
import { lineOf, OptionsError, type v } from "@terse/options";
import type { Segment } from "@terse/tensor";
import type { Recipe } from "./recipe-schema.ts";

type OptimizerSection = Omit<Recipe["optimizer"], "clip" | "clipBy">;

/** An optimizer with its options; for a group, also the parameters that it takes. */
type Section = OptimizerSection["groups"][number];

type Gradient = Recipe["exchange"]["gradient"];

/** Optimizers that take a step together, the key of their section, and how their gradients are compressed. */
export interface Method {
  readonly key: "optimizer" | "local.optimizer";
  readonly optimizer: OptimizerSection;
  readonly gradient: Gradient;
}

type Methods = Pick<Recipe, "optimizer" | "exchange" | "local">;

/** With local steps each rank's own method, and then that of the rounds; else the one of all steps. */
export function methodsIn({ optimizer, exchange: { gradient }, local }: Methods): Method[] {
  const own = { key: "optimizer", optimizer } as const;
  if (!local) return [{ ...own, gradient }];
  return [
    { ...own, gradient: undefined },
    { key: "local.optimizer", optimizer: local.optimizer, gradient },
  ];
}

/**
 * The optimizers of a method, each with the key of its section: first the one of all parameters, then those of the
 * groups.
 */
export function optimizersOf({ key, optimizer }: Pick<Method, "key" | "optimizer">): [string, Section][] {
  const { clip, clipBy, noDecay, groups, ...main } = optimizer as Recipe["optimizer"];
  return [[key, main as Section], ...groups.map((group, i): [string, Section] => [`${key}.groups.${i}`, group])];
}

/** What the definition of an optimizer says of it, for any options. */
export const definitionOf = ({
  name,
}: Pick<Section, "name">): Pick<
  Definition<v.ObjectSchema<v.ObjectEntries, undefined>, Algorithm>,
  "alone" | "afterWarmup" | "ownSteps" | "widthOfSums"
> => algorithms[name];

/** The most steps that ranks take on their own by an option of the optimizer; 1 where it has none. */
export function ownStepsOf(section: Section): number {
  const { ownSteps } = definitionOf(section);
  return ownSteps ? (section as unknown as Record<string, number>)[ownSteps.option]! : 1;
}

/**
 * "dion and lion", or "adamw, terngrad": the optimizers of all parameters, and what compresses their gradients; "muon
 * and adamw, every 10 steps sgd, codec" with local steps.
 */
export function methodName(recipe: Methods): string {
  const names = methodsIn(recipe).map(({ gradient, ...method }) => {
    const name = [...new Set(optimizersOf(method).map(([, { name }]) => name))].join(" and ");
    return gradient ? `${name}, ${gradient.name}` : name;
  });
  return names.join(recipe.local?.syncEvery === 1 ? ", every step " : `, every ${recipe.local?.syncEvery} steps `);
}

/**
 * What `Optimizer` takes, for the parameters of a model. Throws `OptionsError` where a group has no parameter, or an
 * optimizer cannot share the model.
 */
export function groupsOf(
  method: Method,
  segments: readonly Segment[],
  { frozen = false } = {}, // whether the model has other parameters, which are not trained
): { algorithm: Algorithm; groups: ParameterGroup[] } {
  const { optimizer, gradient } = method;
  const sections = optimizersOf(method);
  const owners = segments.map((segment) => 1 + optimizer.groups.findIndex((group) => matches(group, segment)));
  checkOwners(method, segments, owners, frozen);

  const treated = new Map<string, TreatedGroup>();
  for (const [i, { name, role }] of segments.entries()) {
    const [key, section] = sections[owners[i]!]!;
    const decays = !optimizer.noDecay.includes(role) || weightDecayOf(section) === 0;
    const alike = `${key} ${decays}`;
    if (!treated.has(alike))
      treated.set(alike, { key, names: new Set(), ...treatmentOf(key, section, decays, optimizer.lr, gradient) });
    treated.get(alike)!.names.add(name);
  }
  const all = [...treated.values()];
  const matrices = all.find(
    ({ algorithm, names }) => algorithm.takes === "matrices" && notMatrices(segments, names).length > 0,
  );
  if (matrices) throw needsGroup(matrices, notMatrices(segments, matrices.names));
  const whole = all.find(({ algorithm }) => algorithm.splits === "nowhere");
  if (whole && all.length > 1) throw cannotShare(method, whole.algorithm);
  return {
    algorithm: all[0]!.algorithm,
    groups: all.map(({ key, names, ...treatment }) => ({ match: ({ name }) => names.has(name), ...treatment })),
  };
}

interface TreatedGroup extends Omit<ParameterGroup, "match"> {
  readonly key: string; // of its section
  readonly names: Set<string>;
}

function treatmentOf(
  key: string,
  section: Section,
  decays: boolean,
  ofAll: number,
  gradient: Gradient,
): Omit<ParameterGroup, "match"> {
  const { name, lr = ofAll, roles, parameters, ...options } = section;
  const create = algorithms[name] as (options: object, where: string) => Algorithm;
  const own = create(decays ? options : { ...options, weightDecay: 0 }, key);
  const algorithm = gradient ? compressed(own, compressionOf(gradient)) : own;
  return lr === ofAll ? { algorithm } : { algorithm, lrFactor: lr / ofAll };
}

/**
 * Throws `OptionsError` where the optimizers of a recipe cannot have their gradients compressed as it says; found
 * without a model.
 */
export function checkGradients(recipe: Methods): void {
  for (const { gradient, ...method } of methodsIn(recipe))
    if (gradient)
      for (const [key, section] of optimizersOf(method)) treatmentOf(key, section, true, method.optimizer.lr, gradient);
}

/** The compression of gradients on the way to their mean. Throws `OptionsError`. */
function compressionOf({ name, ...options }: NonNullable<Gradient>): GradientCompression {
  const create = gradientCompressions[name] as (options: object, where: string) => GradientCompression;
  return create(options, "exchange.gradient");
}

/** The option of a gradient compression that leaves nothing to compress in a model, in one line. */
export function remarkOnGradient(gradient: NonNullable<Gradient>, segments: readonly Segment[]): string | undefined {
  const remark = compressionOf(gradient).remark?.(segments);
  return remark && lineOf(remark);
}

const matches = ({ roles, parameters }: Section, { name, role }: Segment): boolean =>
  (roles?.includes(role) ?? true) && (parameters === undefined || pattern(parameters).test(name));

/** "blocks.*.weight" as a regular expression. */
const pattern = (parameters: string) =>
  new RegExp(`^${parameters.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&").replaceAll("*", ".*")}$`);

const weightDecayOf = (section: Section) => (section as { weightDecay?: number }).weightDecay;

/** `owners`: for each parameter 0 for the optimizer itself, i + 1 for group i. */
function checkOwners(
  { key, optimizer: { name, groups, noDecay } }: Method,
  segments: readonly Segment[],
  owners: readonly number[],
  frozen: boolean,
): void {
  // "blocks.*.norm.weight (norm)" stands for all blocks.
  const kinds = segments.map((segment) => `${segment.name.replaceAll(/\.\d+\./g, ".*.")} (${segment.role})`);
  const names = [...new Set(kinds)].join(", ");
  const problems = groups.flatMap((group, i) => {
    if (owners.includes(i + 1) || (frozen && group.parameters === undefined)) return [];
    const before = segments.some((segment) => matches(group, segment)) ? " that no group before it takes" : "";
    return [`${key}.groups.${i}: matches no parameter${before}; there is ${names}`];
  });
  if (problems.length === 0 && !owners.includes(0))
    problems.push(`${key}.groups: take every parameter, and leave none to ${key}.name: ${name}; drop a group`);
  if (noDecay.length > 0 && !frozen && !segments.some(({ role }) => noDecay.includes(role)))
    problems.push(`${key}.noDecay: no parameter is ${noDecay.join(" or ")}; there is ${names}`);
  if (problems.length > 0) throw new OptionsError(problems);
}

const notMatrices = (segments: readonly Segment[], names: ReadonlySet<string>): Segment[] =>
  segments.filter(({ name, shape }) => names.has(name) && matrixShape(shape) === undefined);

function needsGroup({ key, algorithm: { name } }: TreatedGroup, [first, ...others]: readonly Segment[]): OptionsError {
  const groups = key.replace(/(\.groups\.\d+)?$/, ".groups");
  const more = others.length === 0 ? "is none" : `and ${others.length} more are none`;
  return new OptionsError([
    `${key}.name: ${name} works on matrices, and ${first!.name} ${more}; give such parameters another optimizer: ${groups}: [{ roles: [embedding, head, norm, vector], name: adamw }]`,
  ]);
}

function cannotShare({ key, optimizer }: Method, { name, perLayer = "another optimizer" }: Algorithm): OptionsError {
  const cause = optimizer.groups.length > 0 ? `${key}.groups` : `${key}.noDecay`;
  return new OptionsError([
    `${cause}: ${name} works on the whole model as one vector here, and cannot share it; take ${perLayer}, or drop ${cause}`,
  ]);
}

/** Contradictions among the optimizers of a recipe, a line for each; found without a model. */
export function problemsOfOptimizers(recipe: Methods): string[] {
  return methodsIn(recipe).flatMap(problemsOfMethod);
}

function problemsOfMethod(method: Method): string[] {
  const { optimizer } = method;
  return optimizersOf(method).flatMap(([key, section]) => {
    const problems: string[] = [];
    if (key !== method.key && section.roles === undefined && section.parameters === undefined)
      problems.push(
        `${key}: names no parameters; give roles, such as [embedding, head], or parameters, such as "blocks.0.*"`,
      );
    if (optimizer.noDecay.length > 0 && !("weightDecay" in algorithms[section.name].options.entries))
      problems.push(`${method.key}.noDecay: ${section.name} has no weightDecay; drop it`);
    return problems;
  });
}
