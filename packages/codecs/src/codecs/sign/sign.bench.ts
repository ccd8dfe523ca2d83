/**
 * Times sign and the vote over 64 Mi floats, far beyond any cache:
 *
 *   node --conditions=@terse/source src/codecs/sign/sign.bench.ts
 */
import { majority, sign } from "../../index.ts";

const n = 64 * 2 ** 20;
const pattern = Float32Array.from({ length: 65_521 }, (_, i) => Math.sin(i * i + 1));
const x = new Float32Array(n);
for (let at = 0; at < n; at += pattern.length) x.set(pattern.subarray(0, n - at), at);
const other = new Float32Array(n).fill(1);
const wire = new Uint8Array(sign.wireBytes(n)).fill(0x5a);
const votes = Array.from({ length: 8 }, (_, r) => wire.subarray((r * wire.length) / 8, ((r + 1) * wire.length) / 8));
const elected = new Uint8Array(wire.length / 8).fill(1);

const work: Record<string, () => void> = {
  encode: () => sign.encode(wire, x, { zero: "plus" }),
  decodeAdd: () => sign.decodeAdd(x, wire, { scale: 1e-9 }),
  "majority of 8, each on an eighth": () => majority(elected, votes, n / 8, { tie: "plus" }),
  "memcpy, for comparison": () => other.set(x),
};

const best: Record<string, number> = {};
for (let round = 0; round < 15; round++) {
  for (const [name, run] of Object.entries(work)) {
    const began = performance.now();
    run();
    best[name] = Math.min(best[name] ?? Number.POSITIVE_INFINITY, performance.now() - began);
  }
}
console.log(`${sign.implementation}, ${n} floats, best of 15`);
for (const [name, ms] of Object.entries(best)) console.log(`${name.padEnd(34)} ${ms.toFixed(1).padStart(6)} ms`);
