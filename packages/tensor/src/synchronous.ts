/**
 * What a function returned that must be synchronous. TypeError with `why` if it is a promise; the caller cannot have that
 * promise any more, so a rejection of it ends no process.
 */
export function synchronous<T>(result: T, why: string): T {
  if (!isPromise(result)) return result;
  result.then(undefined, () => {});
  throw new TypeError(why);
}

export function isPromise(value: unknown): value is Promise<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
