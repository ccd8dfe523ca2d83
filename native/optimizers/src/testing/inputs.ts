import { spawnSync } from "node:child_process";

/** Uniform in [0, 1), the same sequence for one seed (mulberry32). */
export function random(seed: number): () => number {
  let state = seed | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Values such as gradients have, including zeros of both signs and denormals. */
export function anyFloats(n: number, seed: number): Float32Array {
  const next = random(seed);
  const special = [0, -0, 2 ** -149, -(2 ** -130), 1e6, -1e6];
  return Float32Array.from({ length: n }, () =>
    next() < 0.2 ? special[Math.floor(next() * special.length)]! : next() * 2 - 1,
  );
}

export function anyBytes(n: number, seed: number): Uint8Array {
  const next = random(seed);
  return Uint8Array.from({ length: n }, () => Math.floor(next() * 256));
}

/** The fp32 bits: 0 and −0 differ. */
export const bits = (x: Float32Array): number[] => [...new Uint32Array(x.buffer, x.byteOffset, x.length)];

/** Largest |a − b| / |b|. */
export const relativeError = (a: ArrayLike<number>, b: ArrayLike<number>): number =>
  Math.max(...Array.from(a, (value, i) => Math.abs(value - b[i]!) / Math.abs(b[i]!)));

/** Every length to 70, a prime, and lengths near multiples of a kernel's rounds and pages. */
export const lengths = [...Array.from({ length: 71 }, (_, n) => n), 127, 1021, 4096, 8269];

/** A Python with torch, for comparisons with PyTorch itself. */
export const python = process.env["TERSE_PYTHON"];
export const needsPython = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with torch)";

export function askPython(program: string, request: object): unknown {
  const { stdout, stderr, status } = spawnSync(python!, ["-c", program], {
    input: JSON.stringify(request),
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${python}: ${stderr}`);
  return JSON.parse(stdout);
}
