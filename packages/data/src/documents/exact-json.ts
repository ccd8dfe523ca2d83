/**
 * JSON as Python reads it. An integer is a bigint with all its digits, and a number is a float, also where it is whole
 * (22.0): JavaScript's own JSON.parse makes one kind of both. An inner object with a key such as "10" is a Map, because
 * JavaScript's objects have such keys first and in their order as numbers.
 */
export function exactJson(json: string): unknown {
  if (!/"\d+"\s*:/.test(json)) return parse(json, number);
  // Objects keep the order of keys that are no numbers: each is read with a letter in front.
  const lettered = json.replaceAll(/"((?:[^"\\]|\\.)*"\s*:)|"(?:[^"\\]|\\.)*"/gs, (all, key?: string) =>
    key === undefined ? all : `"k${key}`,
  );
  return parse(lettered, (key, value, context) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return number(key, value, context);
    const entries = Object.entries(value).map(([key, each]): [string, unknown] => [key.slice(1), each]);
    return key !== "" && entries.some(([key]) => /^\d+$/.test(key)) ? new Map(entries) : Object.fromEntries(entries);
  });
}

/** Node 22 and later tell a reviver how a number is written. */
type Reviver = (key: string, value: unknown, context: { readonly source: string }) => unknown;
const parse = (json: string, reviver: Reviver): unknown =>
  JSON.parse(json, reviver as (key: string, value: unknown) => unknown);

const number: Reviver = (_, value, { source }) =>
  typeof value === "number" && /^-?\d+$/.test(source) ? BigInt(source) : value;
