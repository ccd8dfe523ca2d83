/** Vectors of f32 in messages to and from their owners, in a type of the wire. Each wire is carried by itself. */
import { bf16, type Codec, type Floats, f16, int8 } from "@terse/codecs";
import { copy } from "@terse/collectives";
import type { DenseType } from "../means/dense-scheme.ts";
import { HostCopies } from "../on-host.ts";
import { averageFloats, floatsAt, writeFloats } from "./f32-wires.ts";

export interface VectorWires {
  readonly type: DenseType;
  bytes(n: number): number;
  /** wire ← x. Throws NotFiniteError, or RangeError where a value does not fit: both refuse the step. */
  write(where: string, wire: Uint8Array, x: Floats): void;
  /** mean ← (1/P) Σ wires, in their order. */
  average(mean: Float32Array, wires: readonly Uint8Array[]): void;
  /** x ← wire */
  read(x: Floats, wire: Uint8Array): void;
}

/** Averages are added in fp64 and rounded once. */
const f32: VectorWires = {
  type: "f32",
  bytes: (n) => 4 * n,
  write: writeFloats,
  average: averageFloats,
  read: (x, wire) => copy(x, floatsAt(wire)),
};

/** Averages are added in fp32. */
const coded = (type: DenseType, codec: Codec): VectorWires => ({
  type,
  bytes: (n) => codec.wireBytes(n),
  write(_, wire, x) {
    using copies = HostCopies.except(x, codec);
    codec.encode(wire, copies.read(x));
  },
  average(mean, wires) {
    const scale = 1 / wires.length;
    for (const [r, wire] of wires.entries()) codec[r === 0 ? "decode" : "decodeAdd"](mean, wire, { scale });
  },
  read(x, wire) {
    using copies = HostCopies.except(x, codec);
    codec.decode(copies.of(x), wire);
    copies.giveBack();
  },
});

const wires: Readonly<Record<DenseType, VectorWires>> = {
  f32,
  bf16: coded("bf16", bf16 as Codec),
  f16: coded("f16", f16 as Codec),
  int8: coded("int8", int8({ block: 512 })),
};

/** Of a single rank, which sends nothing and keeps its vectors as they are, f32. */
export const vectorWires = (type: DenseType, ranks: number): VectorWires => wires[ranks === 1 ? "f32" : type];
