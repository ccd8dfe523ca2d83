import { type DType, showShape } from "./dtypes.ts";
import { isFloat8 } from "./float8.ts";
import {
  type ForeignNames,
  type ParameterShape,
  type StoredForModel,
  type StoredPart,
  storedFor,
  wholeShape,
} from "./stored-for-model.ts";
import { openWeights } from "./weights.ts";

/**
 * How the weights of a folder differ from a model's, as `loadWeights` says it; "" where they fit. Reads no values.
 * Throws `CheckpointError`.
 */
export async function misfits(
  folder: string,
  parameters: Iterable<readonly [name: string, parameter: ParameterShape]>,
  names: ForeignNames = {},
): Promise<string> {
  await using weights = await openWeights(folder);
  const wanted = new Map(parameters);
  return differences(wanted, storedFor(wanted, weights, names), names);
}

const isFloating = (dtype: DType) => isFloat8(dtype) || ["f16", "bf16", "f32", "f64"].includes(dtype);
const listed = 4; // differences of each kind in a message

/** How files differ from a model, in one line; "" where they fit. */
export function differences(
  wanted: ReadonlyMap<string, ParameterShape>,
  { found, unexpected }: StoredForModel,
  names: ForeignNames,
): string {
  const [missing, other]: [string[], string[]] = [[], []];
  for (const [name, parameter] of wanted) {
    const parts = found.get(name);
    if (!parts) {
      if (!names.mayBeAbsent?.(name)) missing.push(name);
      continue;
    }
    const stored = parts.filter((part) => part !== undefined);
    if (stored.length < parts.length) {
      missing.push(`${name} (${stored.length} of its ${parts.length} parts are there)`);
      continue;
    }
    const shape = wholeShape(stored);
    const types = [...new Set(stored.map(({ dtype }) => dtype))];
    const [dtype] = types as [DType];
    if (!shape || (showShape(shape) !== showShape(parameter.shape) && !names.adapts?.(name, shape))) {
      const shapes = shape ? [shape] : stored.map((part) => part.shape);
      other.push(
        `${name} is ${shapes.map(showShape).join(" and ")} in the file and ${showShape(parameter.shape)} in the model`,
      );
    } else if (types.length > 1 || (dtype !== parameter.dtype && !(isFloating(dtype) && isFloating(parameter.dtype))))
      other.push(`${name} is ${types.join(" and ")} in the file and ${parameter.dtype} in the model`);
  }
  const near = guess(missing.slice(0, listed), wanted, unexpected);
  return [
    ...few("missing ", missing, ", "),
    ...few(
      "unexpected ",
      unexpected.map(({ stored }) => shortName(stored)),
      ", ",
    ),
    ...near,
    ...few("", other, "; "),
  ].join("; ");
}

/** The first ones, and how many more there are; nothing where there are none. */
function few(label: string, problems: readonly string[], separator: string): string[] {
  if (problems.length === 0) return [];
  const more = problems.length > listed ? [`and ${problems.length - listed} more`] : [];
  return [label + [...problems.slice(0, listed), ...more].join(separator)];
}

const shortName = (name: string) => (name.length > 120 ? `${name.slice(0, 117)}…` : name);

/**
 * Which unexpected tensor may be the missing one that is most similar to any: of the same shape, its name ends in the
 * same words.
 */
function guess(
  missing: readonly string[],
  wanted: ReadonlyMap<string, ParameterShape>,
  unexpected: readonly StoredPart[],
): string[] {
  let [best, most] = ["", 0];
  for (const name of missing) {
    const words = name.split(".").reverse();
    const shape = wanted.get(name)?.shape.join();
    for (const { stored, shape: theirs } of unexpected) {
      if (theirs.join() !== shape) continue;
      const others = stored.split(".").reverse();
      const first = words.findIndex((word, i) => word !== others[i]);
      const alike = first < 0 ? words.length : first;
      if (alike > most) [best, most] = [`${name} may be ${shortName(stored)} there`, alike];
    }
  }
  return most > 0 ? [best] : [];
}
