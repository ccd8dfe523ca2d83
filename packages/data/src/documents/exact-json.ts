/**
 * JSON as Python reads it: an integer is a bigint with all its digits, and a number is a float, also where it is whole
 * (22.0). JavaScript's own JSON.parse makes one kind of both.
 */
export const exactJson = (json: string): unknown =>
  // Node 22 and later tell a reviver how a number is written.
  JSON.parse(json, ((_key: string, value: unknown, { source }: { source: string }) =>
    typeof value === "number" && /^-?\d+$/.test(source) ? BigInt(source) : value) as (
    key: string,
    value: unknown,
  ) => unknown);
