/** Numbers of Python: an int has all its digits, and a float is written as one. */

/** A float as repr() writes it. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0.0";
  const [digits, power] = value.toExponential().split("e") as [string, string];
  const places = Math.abs(Number(power));
  if (Number(power) < -4 || Number(power) >= 16) return `${digits}e${power[0]}${String(places).padStart(2, "0")}`;
  return Number.isInteger(value) ? `${value}.0` : String(value);
}

/** A float with so many digits behind the point, as round() and '%.2f' have it: a half goes to the even digit. */
export function fixed(value: number, places: number): string {
  const text = value.toFixed(places); // which takes the larger digit where two are as near
  const isHalf = /^50*$/.test(value.toFixed(100).split(".")[1]?.slice(places) ?? "");
  if (!isHalf || /[02468]$/.test(text)) return text;
  const exact = value.toFixed(places + 1); // ends with 5
  return exact.slice(0, -1).replace(/\.$/, "");
}

const flooredRest = (a: bigint, b: bigint) => {
  const rest = a % b; // with the sign of a; Python's has that of b
  return rest !== 0n && rest < 0n !== b < 0n ? rest + b : rest;
};

/** Operators of two integers whose result is one. */
export const ofIntegers: Readonly<Record<string, (a: bigint, b: bigint) => bigint>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "//": (a, b) => (a - flooredRest(a, b)) / b,
  "%": flooredRest,
  "**": (a, b) => a ** b,
};

const floatRest = (a: number, b: number) => {
  const rest = a % b;
  return rest !== 0 && rest < 0 !== b < 0 ? rest + b : rest === 0 && b < 0 ? -0 : rest;
};

/** Operators of two numbers of which one is a float, and those of two integers whose result is a float. */
export const ofFloats: Readonly<Record<string, (a: number, b: number) => number>> = {
  "+": (a, b) => a + b,
  "-": (a, b) => a - b,
  "*": (a, b) => a * b,
  "/": (a, b) => a / b,
  "//": (a, b) => Math.round((a - floatRest(a, b)) / b) || 0 * (a / b), // with the sign of a zero
  "%": floatRest,
  "**": (a, b) => a ** b,
};
