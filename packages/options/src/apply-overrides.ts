import { isPlainObject, show } from "./describe.ts";
import { OptionsError } from "./options-error.ts";
import { parseYamlValue } from "./yaml.ts";

type Tree = Record<string, unknown>;

/**
 * A copy of `tree` with overrides applied: `applyOverrides(recipe, ["optimizer.lr=3e-4", "steps=10_000"])`. An override
 * may start with `--`, as on a command line. Values are YAML (numbers, true, null, [a, b]). The last override of a name
 * wins. Missing groups are created. A number names an entry of a list, from 0: "optimizer.groups.0.lr=1e-3". The number
 * after the last one adds an entry. Names and types are not checked here; `parseOptions` checks them. Throws one
 * `OptionsError` with a line per malformed override. Does not change `tree`.
 */
export function applyOverrides(tree: Readonly<Tree>, overrides: readonly string[]): Tree {
  const problems: string[] = [];
  let result: Tree = { ...tree };
  for (const override of overrides) {
    try {
      const { path, value } = readOverride(override);
      result = withValue(result, path, value, []);
    } catch (error) {
      if (!(error instanceof OptionsError)) throw error;
      problems.push(...error.lines);
    }
  }
  if (problems.length > 0) throw new OptionsError(problems);
  return result;
}

function readOverride(override: string): { path: string[]; value: unknown } {
  const equals = override.indexOf("=");
  const dotted = (equals < 0 ? override : override.slice(0, equals)).replace(/^--/, "");
  if (equals < 0) throw new OptionsError([`${override}: an override is written name=value, such as optimizer.lr=3e-4`]);
  const path = dotted.split(".");
  const bad = path.find(
    (key, i) => !(i > 0 && isIndex(key)) && (!/^[A-Za-z_][\w-]*$/.test(key) || key === "__proto__"),
  );
  if (bad !== undefined)
    throw new OptionsError([`${override}: ${show(bad)} is not a name; write dotted names, such as optimizer.lr=3e-4`]);
  const text = override.slice(equals + 1);
  if (text.trim() === "")
    throw new OptionsError([`${override}: no value; write ${dotted}=VALUE, ${dotted}=null or ${dotted}=""`]);
  return { path, value: parseYamlValue(text, dotted) };
}

const isIndex = (key: string) => /^\d+$/.test(key);

function withValue(tree: Readonly<Tree>, path: readonly string[], value: unknown, above: readonly string[]): Tree {
  const [key, ...deeper] = path as [string, ...string[]];
  if (deeper.length === 0) return { ...tree, [key]: value };
  const inside = (Object.hasOwn(tree, key) ? tree[key] : undefined) ?? (isIndex(deeper[0]!) ? [] : {});
  return { ...tree, [key]: within(inside, deeper, value, [...above, key]) };
}

/** `inside`, the group of options or the list at `place`, with the value at `path` changed. */
function within(inside: unknown, path: readonly string[], value: unknown, place: readonly string[]): unknown {
  const [key, ...deeper] = path as [string, ...string[]];
  const here = place.join(".");
  const name = [here, ...path].join(".");
  if (Array.isArray(inside)) {
    if (!isIndex(key) || Number(key) > inside.length)
      throw new OptionsError([
        `${name}: ${here} is a list of ${inside.length}; write ${here}.NUMBER with a number from 0 to ${inside.length}, or the whole list as ${here}=[…]`,
      ]);
    const i = Number(key);
    return inside.toSpliced(
      i,
      1,
      deeper.length === 0 ? value : within(inside[i] ?? {}, deeper, value, [...place, key]),
    );
  }
  if (!isPlainObject(inside))
    throw new OptionsError([
      `${name}: ${here} is ${show(inside)}, not a group of options; override ${here} as a whole`,
    ]);
  return withValue(inside, path, value, place);
}
