/** What files have for a model, by the names of its parameters. */
import { CheckpointError } from "./checkpoint-error.ts";
import { type DType, elementCount } from "./dtypes.ts";
import { haveSameBytes } from "./have-same-bytes.ts";
import { meaningsOf, type NamesInFiles } from "./names-in-files.ts";
import { openWeights, type Weights } from "./weights.ts";

/** The shape and dtype of a parameter, which a stored tensor must fit. */
export interface ParameterShape {
  readonly shape: readonly number[];
  readonly dtype: DType;
}

/** How a folder of others fits a model. */
export interface ForeignNames extends NamesInFiles {
  /** Whether the files may lack a parameter, which is then left as it is. */
  mayBeAbsent?(parameter: string): boolean;
  /** Whether the model takes a stored tensor of another shape than its parameter has. */
  adapts?(parameter: string, shape: readonly number[]): boolean;
}

export interface StoredPart extends ParameterShape {
  readonly stored: string; // its name in the files
}

/** The parts of a parameter that the files have; undefined for a part that they lack. */
export type FoundParts = readonly (StoredPart | undefined)[];

/** What files have for a model. */
export interface StoredForModel {
  readonly found: ReadonlyMap<string, FoundParts>; // by parameter
  // Copies of a parameter that was found under another name.
  readonly copies: readonly { readonly stored: StoredPart; readonly copyOf: string }[];
  readonly unexpected: readonly StoredPart[];
}

/** A parameter of which the files have a copy alone is that copy. */
export function storedFor(
  wanted: ReadonlyMap<string, ParameterShape>,
  { path, tensors }: Weights,
  names: ForeignNames,
): StoredForModel {
  const meaningOf = meaningsOf(wanted.keys(), names);
  const found = new Map<string, (StoredPart | undefined)[]>();
  const [copies, unexpected]: [{ stored: StoredPart; copyOf: string }[], StoredPart[]] = [[], []];
  for (const [name, { shape, dtype }] of tensors) {
    const [stored, meaning] = [{ stored: name, shape, dtype }, meaningOf(name)];
    if (meaning === "unused") continue;
    if (meaning === undefined) unexpected.push(stored);
    else if ("copyOf" in meaning) copies.push({ stored, ...meaning });
    else {
      const { parameter, part, parts } = meaning;
      const all = found.get(parameter) ?? Array.from({ length: parts }, () => undefined);
      const other = all.length === parts ? all[part] : all.find((each) => each !== undefined);
      if (other)
        throw new CheckpointError(
          `${path} has ${parameter} twice, as ${other.stored} and as ${name}; remove one of them.`,
        );
      all[part] = stored;
      found.set(parameter, all);
    }
  }
  const more = copies.filter(({ stored, copyOf }) => {
    const isAlone = wanted.has(copyOf) && !found.has(copyOf);
    if (isAlone) found.set(copyOf, [stored]);
    return !isAlone;
  });
  return { found, copies: more, unexpected };
}

/** The first tensor that stands in the files twice, under two names and with two values. */
export async function otherCopy(
  weights: Weights,
  { found, copies }: StoredForModel,
): Promise<{ copy: string; original: string } | undefined> {
  for (const { stored, copyOf } of copies) {
    const original = found.get(copyOf)?.[0]?.stored;
    if (original !== undefined && !(await haveSameBytes(weights.placeOf(stored.stored), weights.placeOf(original))))
      return { copy: stored.stored, original };
  }
  return undefined;
}

/** The shape of parts whose rows stand one after the other; undefined where they do not fit each other. */
export function wholeShape(parts: readonly ParameterShape[]): readonly number[] | undefined {
  const [first] = parts as [ParameterShape];
  if (parts.length === 1) return first.shape;
  const alike = ({ shape }: ParameterShape) =>
    shape.length > 0 && shape.slice(1).join() === first.shape.slice(1).join();
  return parts.every(alike)
    ? [parts.reduce((rows, { shape }) => rows + shape[0]!, 0), ...first.shape.slice(1)]
    : undefined;
}

/**
 * The first of a tied model's copies that the files have with other values than the parameter, if any: the weights are
 * those of a model that is not tied. Throws `CheckpointError`.
 */
export async function differingCopy(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: ParameterShape]>,
  names: ForeignNames,
): Promise<string | undefined> {
  await using weights = await openWeights(folder);
  return (await otherCopy(weights, storedFor(new Map(parameters), weights, names)))?.copy;
}

/** The number of elements of all tensors in a folder. Throws `CheckpointError`. */
export async function storedElements(folder: string): Promise<number> {
  await using weights = await openWeights(folder);
  return [...weights.tensors.values()].reduce((sum, { shape }) => sum + elementCount(shape), 0);
}
