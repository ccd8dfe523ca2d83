/** Asks torch what a 16-bit float is, and what an fp32 becomes in it. For tests. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "vitest";
import { BadWireError, type Codec } from "../codec.ts";
import { random } from "./inputs.ts";
import { python } from "./python.ts";

/** Is there a Python with torch? */
export const torch = python !== undefined && spawnSync(python, ["-c", "import torch"]).status === 0;
export const needsTorch = torch ? "" : " (skipped: TERSE_PYTHON does not name a Python with torch)";

type Dtype = "bfloat16" | "float16";
type HalfCodec = Codec<Record<never, never>>;

/** Sends bytes through `torch.frombuffer(…, dtype=from).to(to)`. */
function converted(bytes: Uint8Array, from: string, to: string): Buffer {
  const folder = mkdtempSync(join(tmpdir(), "terse-"));
  const [given, answered] = [join(folder, "given"), join(folder, "answered")];
  const program = `
import sys, torch
given, answered, of, to = sys.argv[1:]
x = torch.frombuffer(bytearray(open(given, "rb").read()), dtype=getattr(torch, of))
open(answered, "wb").write(x.to(getattr(torch, to)).view(torch.uint8).numpy().tobytes())`;
  try {
    writeFileSync(given, bytes);
    execFileSync(python!, ["-c", program, given, answered, from, to]);
    return readFileSync(answered);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** All 65,536 halves: the finite ones have torch's values, each of the others is a wire that no encoder writes. */
export function decodesLikeTorch(codec: HalfCodec, dtype: Dtype): void {
  const halves = Uint16Array.from({ length: 1 << 16 }, (_, i) => i);
  const bytes = converted(new Uint8Array(halves.buffer), dtype, "float32");
  const values = new Float32Array(bytes.buffer, bytes.byteOffset, halves.length);
  const finite = halves.filter((half) => Number.isFinite(values[half]!));
  expect(finite.length).toBeGreaterThan(60_000);
  expect(finite.length).toBeLessThan(1 << 16);

  const sum = new Float32Array(finite.length).fill(-0); // −0 + v = v for every v, −0 too
  codec.decodeAdd(sum, new Uint8Array(finite.buffer));
  const wanted = Float32Array.from(finite, (half) => values[half]!);
  expect(Buffer.from(sum.buffer).equals(Buffer.from(wanted.buffer))).toBe(true);

  const untouched = new Float32Array(130).fill(0.5);
  for (const half of halves.filter((half) => !Number.isFinite(values[half]!))) {
    const wire = new Uint16Array(130);
    wire[half % 130] = half;
    expect(() => codec.decodeAdd(untouched, new Uint8Array(wire.buffer))).toThrow(BadWireError);
  }
  expect(untouched.every((value) => value === 0.5)).toBe(true);
}

/**
 * Ten million patterns of fp32's bits: torch's halves where those are finite; where they are not, the index is refused.
 */
export function agreesWithTorch(codec: HalfCodec, dtype: Dtype): void {
  const next = random(2026);
  const patterns = new Uint32Array(1e7);
  for (let i = 0; i < patterns.length; i++) {
    let bits = next() * 2 ** 32;
    // Half of them from 2^-31 to 2^32, around f16's range; and ties, which chance seldom gives.
    if (i % 2 === 0) bits = (bits & 0x8fffffff) | (i % 4 === 0 ? 0x30000000 : 0x40000000);
    if (i % 8 === 0) bits &= i % 16 === 0 ? 0xfffff000 : 0xffff8000;
    patterns[i] = bits;
  }
  const x = new Float32Array(patterns.buffer);
  const bytes = converted(new Uint8Array(patterns.buffer), "float32", dtype);
  const halves = new Uint16Array(bytes.buffer, bytes.byteOffset, x.length);
  const infinite = dtype === "bfloat16" ? 0x7f80 : 0x7c00;

  const given = new Float32Array(x.length);
  const wanted = new Uint16Array(x.length);
  const refused: number[] = []; // finite in fp32, infinite in torch's half
  let fitting = 0;
  for (let i = 0; i < x.length; i++) {
    if ((halves[i]! & infinite) !== infinite) {
      given[fitting] = x[i]!;
      wanted[fitting++] = halves[i]!;
    } else if (Number.isFinite(x[i])) refused.push(x[i]!);
  }
  const wire = new Uint8Array(2 * fitting);
  codec.encode(wire, given.subarray(0, fitting));
  expect(Buffer.from(wire.buffer).equals(Buffer.from(wanted.buffer, 0, wire.length))).toBe(true);
  expect(fitting).toBeGreaterThan(5e6);

  expect(refused.length).toBeGreaterThan(20);
  for (const [i, value] of refused.slice(0, 2000).entries()) {
    const among = new Float32Array(70).fill(1);
    among[i % 70] = value;
    const sentence = `x[${i % 70}] is ${value}, which this codec cannot write`;
    expect(() => codec.encode(new Uint8Array(140), among)).toThrow(sentence);
  }
}
