/** The values that ranks exchange by the rendezvous, which hands them on as they are. */
import { RendezvousError } from "../errors.ts";

/** For each key, what its value must be. */
export type Shape = Readonly<Record<string, (value: unknown) => boolean>>;

const longestText = 1000; // characters

export const isText = (value: unknown): value is string => typeof value === "string" && value.length <= longestText;
export const isCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
export const optional = (is: (value: unknown) => boolean) => (value: unknown) => value === undefined || is(value);
/** So many bytes in base64, or any number of them. */
export const isBlob = (bytes?: number) => (value: unknown) =>
  isText(value) &&
  /^[A-Za-z0-9+/]*={0,2}$/.test(value) &&
  (bytes === undefined || Buffer.from(value, "base64").length === bytes);
export const areCounts = (length: number) => (value: unknown) =>
  Array.isArray(value) && value.length === length && value.every(isCount);

/** What is wrong with a value that must have this shape; undefined where nothing is. */
export function misfit(value: unknown, shape: Shape): string | undefined {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return "it is no object";
  const wrong = Object.entries(shape).find(([key, is]) => !is((value as Record<string, unknown>)[key]));
  return wrong && `its ${wrong[0]} ${Object.hasOwn(value, wrong[0]) ? "is something else" : "is missing"}`;
}

/** The values of all members, which `shapeOf` describes by place. Throws RendezvousError, which names the rank. */
export function checkValues<T>(
  values: unknown,
  members: readonly number[],
  what: string,
  shapeOf: (place: number) => Shape,
): T[] {
  if (!Array.isArray(values) || values.length !== members.length)
    throw new RendezvousError(`the rendezvous sent ${what} of other ranks than those that it was asked for`);
  values.forEach((value, place) => {
    const problem = misfit(value, shapeOf(place));
    if (problem === undefined) return;
    throw new RendezvousError(
      `rank ${members[place]} sent invalid data as ${what}: ${problem}; check that it runs the same version of terse`,
    );
  });
  return values as T[];
}
