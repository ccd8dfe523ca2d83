/** Checks of what a codec is given, and the error for a number that it refuses. */
import {
  checkBuffer,
  type EncodeCall,
  type Floats,
  floatAt,
  NotFiniteError,
  type Parameters,
  refuseGone,
} from "@terse/native-codecs";
import { BadWireError, type Codec, type Takes } from "./codec.ts";
import { widthOf } from "./shared/fields/fields.ts";
import { refuseOverlap } from "./shared/overlap.ts";
import { largestFloat } from "./shared/rounding.ts";
import { scaleGroupCount } from "./shared/scale-groups/scale-groups.ts";

export function checkBytes(where: string, what: string, bytes: Uint8Array, expected: number, holds: string): void {
  if (!(bytes instanceof Uint8Array)) throw new TypeError(`${where}: ${what} must be a Uint8Array.`);
  refuseGone(where, what, bytes);
  if (bytes.length !== expected) {
    throw new RangeError(
      `${where}: ${what} has ${bytes.length} bytes, and ${holds} take ${expected}; pass a view of exactly that many.`,
    );
  }
}

/** The error that is multiplied by `decay`, and then added to x before it is encoded. */
interface Added {
  readonly error: Floats;
  readonly decay: number;
}

/**
 * Throws the error for the element at index `accepted`, if it was refused. With error feedback the encoded value is
 * x + decay · error.
 */
export function accept(where: string, accepted: number, x: Floats, added?: Added, name = "x"): void {
  if (accepted === x.length) return;
  const given = valueAt(x, accepted);
  if (!Number.isFinite(given)) throw new NotFiniteError(`${where}: ${name}`, accepted, given);
  const times = added && added.decay !== 1 ? `${added.decay} · ` : "";
  const what = added ? `x[${accepted}] + ${times}error` : name;
  const value = added ? Math.fround(given + Math.fround(added.decay * valueAt(added.error, accepted))) : given;
  if (!Number.isFinite(value)) throw new NotFiniteError(`${where}: ${what}`, accepted, value);
  throw new RangeError(
    `${where}: ${what}[${accepted}] is ${value}, which this codec cannot write; scale or clamp x, or take another one.`,
  );
}

const valueAt = (x: Floats, i: number): number => (x instanceof Float32Array ? x[i]! : floatAt(x, i));

/** `runsOn`: which devices the floats may be on; the CPU alone unless given. */
export function checkFloats(where: string, what: string, x: Floats, runsOn?: Codec["runsOn"]): void {
  if (!(x instanceof Float32Array)) {
    if (typeof x?.pointer !== "bigint")
      throw new TypeError(
        `${where}: ${what} must be a Float32Array, or memory with pointer, length, dtype and device.`,
      );
    if (x.dtype !== "f32" || !(x.device === "cpu" || runsOn?.(x.device)))
      throw new TypeError(`${where}: ${what} is ${x.dtype} on ${x.device}, and must be f32 on cpu.`);
  }
  checkBuffer(where, what, x);
}

/** As the function of @terse/native-loader, in few bytes for a page: an unknown option would be left out in silence. */
export function checkOptions(where: string, given: object, known: readonly string[]): void {
  if (typeof given !== "object" || !given)
    throw new TypeError(`${where}: options are an object, as in { ${known[0]}: … }, and this is ${String(given)}.`);
  for (const name of Object.keys(given))
    if (!known.includes(name))
      throw new TypeError(`${where}: there is no option ${name} (known: ${known.join(", ")}).`);
}

export function checkCall(where: string, takes: Takes, { zero, hold, seed, step, index }: EncodeCall, n: number): void {
  if (takes.zero && zero !== "plus" && zero !== "minus") {
    throw new TypeError(
      `${where}: zero is ${String(zero)}, and must be "plus" or "minus"; for "alternate" pass signAt(policy, step), for "hold" pass a mask.`,
    );
  }
  checkHold(where, takes, hold, n);
  if (!takes.random) return;
  for (const [what, value] of Object.entries({ seed, step, index: index ?? 0 })) {
    if (!Number.isSafeInteger(value) || value! < 0) {
      throw new RangeError(
        `${where}: ${what} is ${String(value)}, and must be a whole number, 0 or more: draws are a function of seed, step and index.`,
      );
    }
  }
  if ((index ?? 0) % 64 !== 0) throw new RangeError(`${where}: index is ${index}, and must be a multiple of 64.`);
}

/** The decay of an error in fp32, 1 unless given. RangeError if it is not more than 0 and at most 1. */
export function checkedDecay(where: string, decay: unknown = 1): number {
  const rounded = typeof decay === "number" ? Math.fround(decay) : Number.NaN;
  if (rounded > 0 && rounded <= 1) return rounded;
  throw new RangeError(
    `${where}: decay is ${String(decay)}, and must be a number, more than 0 and at most 1: the error is multiplied by it before x is added.`,
  );
}

export function checkFactor(where: string, what: string, factor: unknown): void {
  if (typeof factor !== "number" || !Number.isFinite(Math.fround(factor)))
    throw new RangeError(`${where}: ${what} is ${String(factor)}, and must be a number that is finite in fp32.`);
}

export function checkHold(where: string, takes: Takes, hold: Uint8Array | undefined, n: number): void {
  if (hold === undefined) return;
  if (!takes.hold) throw new TypeError(`${where}: this codec takes no mask; leave \`hold\` out.`);
  checkBytes(where, "hold", hold, Math.ceil(n / 8), `${n} elements`);
}

export function checkUnits(
  where: string,
  takes: Takes,
  units: Float32Array | undefined,
  n: number,
  of: Parameters,
): void {
  if (units === undefined) return;
  if (!takes.units || !of.unscaled)
    throw new TypeError(`${where}: only codecs with unscaled wires (l1, linf) take units, in place of the scales.`);
  if (!(units instanceof Float32Array)) throw new TypeError(`${where}: units must be a Float32Array.`);
  const groups = scaleGroupCount(n, of);
  if (units.length !== groups)
    throw new RangeError(
      `${where}: there are ${units.length} units, and ${n} floats have ${groups} scale groups: one each.`,
    );
  const bad = units.findIndex((unit) => !(unit >= 0 && unit * (2 ** widthOf(of) - 1) <= largestFloat));
  if (bad >= 0)
    throw new RangeError(
      `${where}: unit ${bad} is ${units[bad]}, and must be 0 or more, and times ${2 ** widthOf(of) - 1} finite in fp32.`,
    );
}

type Wires = Pick<Codec, "takes" | "parameters" | "wireBytes">;

export function checkEncoding(
  { takes, parameters, wireBytes }: Wires,
  where: string,
  wire: Uint8Array,
  x: Floats,
  call: EncodeCall,
  { what = "x", runsOn }: { what?: string; runsOn?: Codec["runsOn"] } = {},
): void {
  checkFloats(where, what, x, runsOn);
  checkBytes(where, "wire", wire, wireBytes(x.length), `${x.length} floats`);
  checkCall(where, takes, call, x.length);
  checkUnits(where, takes, call.units, x.length, parameters);
  refuseOverlap(where, "wire", wire, { [what]: x, hold: call.hold, units: call.units });
}

/** Other ranks' wires, whose sum is added to `error`. */
export function checkWires(
  { wireBytes }: Wires,
  where: string,
  wire: Uint8Array,
  wires: readonly Uint8Array[],
  error: Floats,
): void {
  for (const [r, one] of wires.entries()) {
    checkBytes(where, `wires[${r}]`, one, wireBytes(error.length), `${error.length} floats`);
    refuseOverlap(where, "wire", wire, { [`wires[${r}]`]: one });
    refuseOverlap(where, "error", error, { [`wires[${r}]`]: one });
  }
}

export const badWire = (where: string, parameters: Parameters): BadWireError =>
  new BadWireError(
    `${where}: no encoder writes such a wire: it was damaged, or written with other parameters than ${JSON.stringify(parameters)}.`,
  );
