/** Inputs of tests, the same for one seed. */

/**
 * Numbers of every kind that is finite: normal ones, zeros of both signs, denormals, the largest. The same for one
 * seed.
 */
export function anyFloats(n: number, seed: number): Float32Array {
  const next = random(seed);
  const special = [0, -0, 2 ** -149, -(2 ** -149), 2 ** -127, 3.4028234663852886e38, -3.4028234663852886e38];
  return Float32Array.from({ length: n }, () =>
    next() < 0.3 ? special[Math.floor(next() * special.length)]! : next() * 4 - 2,
  );
}

/**
 * Numbers as gradients have them: both signs, some orders of magnitude, now and then an exact zero. The same for one
 * seed.
 */
export function gradients(n: number, seed: number): Float32Array {
  const next = random(seed);
  return Float32Array.from({ length: n }, () => (next() < 0.1 ? 0 : (next() - 0.5) * 2 ** (-8 * next())));
}

export function anyBytes(n: number, seed: number): Uint8Array {
  const next = random(seed);
  return Uint8Array.from({ length: n }, () => Math.floor(next() * 256));
}

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
