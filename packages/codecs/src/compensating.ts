/** A codec of one magnitude, with the passes of 1-bit Adam and 1-bit LAMB that compensate errors while they encode. */
import type { EncodeCall, Floats } from "@terse/native-codecs";
import { accept, badWire, checkEncoding, checkFactor, checkFloats, checkWires } from "./arguments.ts";
import { kernelOf } from "./checked-codec.ts";
import type { Codec, Definition } from "./codec.ts";
import { refuseOverlap } from "./shared/overlap.ts";

export interface Compensating {
  /**
   * The momentum with error compensation, in one pass: error = error − sent sign(error) + keep · m + add · g, where
   * sign(0) is 1 and each product is added with one rounding, the first one first; wire = encode(error), an exact 0 as
   * plus. `error` still holds what this wire says: the next call subtracts it, with this wire's magnitude as `sent`. Of
   * held elements nothing is sent. NotFiniteError at the first NaN or infinity of what is to be sent, after which
   * `error` is undefined.
   */
  encodeMomentum(wire: Uint8Array, m: Floats, g: Floats, error: Floats, call: MomentumOptions): void;
  /**
   * The same for the owner of a chunk: error = error − sent sign(error) + scale Σ decode(wires), in the order of the
   * wires; wire = encode(error). `scale` defaults to 1. Held elements stay as they are. BadWireError as `decodeAdd`.
   */
  encodeSum(wire: Uint8Array, wires: readonly Uint8Array[], error: Floats, call: SumOptions): void;
}

/** Options of `encodeSum`. */
export interface SumOptions {
  /** The magnitude on the wire that was written of this error last; 0 where there is none. */
  readonly sent: number;
  readonly scale?: number | undefined;
  readonly hold?: Uint8Array | undefined; // as of Zeros
}

/** Options of `encodeMomentum`: the factors of the momentum and of the gradient. */
export interface MomentumOptions extends Pick<SumOptions, "sent" | "hold"> {
  readonly keep: number;
  readonly add: number;
}

/** Adds the passes to a codec whose definition and native implementations have them. */
// @__NO_SIDE_EFFECTS__
export function compensating<Call extends EncodeCall>(
  definition: Definition,
  codec: Codec<Call>,
): Codec<Call> & Compensating {
  const { name, parameters } = codec;
  const kernel = kernelOf(definition);
  return Object.assign(codec, {
    encodeMomentum(wire, m, g, error, { keep, add, sent, hold }) {
      const where = `${name}.encodeMomentum`;
      const call = { keep, add, sent, hold, zero: "plus" } as const;
      checkEncoding(codec, where, wire, error, call, { what: "error" });
      for (const [what, read] of Object.entries({ m, g })) {
        checkFloats(where, what, read);
        if (read.length !== error.length)
          throw new RangeError(`${where}: ${what} has ${read.length} floats, and error has ${error.length}.`);
      }
      refuseOverlap(where, "wire", wire, { m, g });
      refuseOverlap(where, "error", error, { m, g, hold });
      for (const [what, factor] of Object.entries({ keep, add, sent })) checkFactor(where, what, factor);
      const accepted = kernel().encodeMomentum!(wire, m, g, error, parameters, call);
      accept(where, accepted, error, undefined, "the momentum with its error");
    },

    encodeSum(wire, wires, error, { sent, scale = 1, hold }) {
      const where = `${name}.encodeSum`;
      const call = { sent, scale, hold, zero: "plus" } as const;
      const all = [...wires];
      checkEncoding(codec, where, wire, error, call, { what: "error" });
      checkWires(codec, where, wire, all, error);
      refuseOverlap(where, "error", error, { hold });
      for (const [what, factor] of Object.entries({ scale, sent })) checkFactor(where, what, factor);
      const accepted = kernel().encodeSum!(wire, all, error, parameters, call);
      if (accepted < 0) throw badWire(where, parameters);
      accept(where, accepted, error, undefined, "the sum");
    },
  } satisfies Compensating as Compensating);
}
