/**
 * What every codec costs, compared with the speed of this machine's memory in the same run, and with NumPy and torch
 * where they have the same operation.
 *
 *   streaming     bytes read a second by the better of two plain in-place loops (memory.ts)
 *   over_stream   (4 n + wire bytes) / seconds / streaming: the floats and the wire, each counted once, however often
 *                 they are read. With error feedback 8 n + wire bytes, because the error counts too
 *   over_encode   seconds with error feedback ÷ seconds of encoding alone
 *   over_unpack   seconds to unpack, sum, compare and pack in fp32, as DeepSpeed does, ÷ seconds of the vote;
 *                 over_unpack_bytes: the same in NumPy's fastest way, which counts in bytes
 *   over_numpy, over_torch   the peer's seconds ÷ ours
 *
 * One thread unless the case says otherwise. Both sides are measured alternately, and each ratio is of one round.
 */

import { codecNamed, majority, useThreads, voteImplementation } from "@terse/codecs";
import type { CodecKernel, EncodeCall, Parameters } from "@terse/native-codecs";
import { votes as voteKernels } from "@terse/native-codecs";
import { availableProcessors } from "@terse/native-loader";
import { setNumThreads } from "@terse/tensor";
import { inTurns, medianRatio } from "../in-turns.ts";
import { type Measurement, median } from "../measurement.ts";
import { clocked, streamingSpeed } from "../memory.ts";
import { Peer } from "../peer.ts";
import { localWork } from "../step/local-work.ts";

const n = 64 * 2 ** 20;
const small = 2 ** 20; // for implementations that are too slow for 64 Mi floats
const elements = 16 * 2 ** 20; // of a vote
const rounds = 5;

const call: EncodeCall = { seed: 1, step: 1, index: 0, zero: "plus" };

/** A codec with its parameters; `how` follows its name in the case. */
interface Configuration {
  readonly name: string;
  readonly how?: string;
  readonly parameters?: (n: number) => Parameters;
  /** Decoding touches few floats, so its rate over all floats has no meaning. */
  readonly sparse?: true;
  /** Measured with error feedback too. */
  readonly fedBack?: true;
}

const directionsOf = (sparse?: true) => (sparse ? (["encode"] as const) : (["encode", "decode"] as const));

const configurations: readonly Configuration[] = [
  { name: "sign", fedBack: true },
  { name: "ternary" },
  { name: "count", how: "8 bits, 8 ranks", parameters: () => ({ width: 8, ranks: 8 }) },
  { name: "l1", how: "4 bits", parameters: () => ({ bits: 4 }), fedBack: true },
  { name: "l1", how: "4 bits, blocks of 4096", parameters: () => ({ bits: 4, block: 4096 }) },
  { name: "bin-means", how: "4 bits", parameters: () => ({ bits: 4 }), fedBack: true },
  { name: "bin-means", how: "4 bits, blocks of 65536", parameters: () => ({ bits: 4, block: 65536 }), fedBack: true },
  { name: "l1", how: "5 in 8 bits, unscaled", parameters: () => ({ bits: 5, width: 8, ranks: 8, unscaled: true }) },
  { name: "linf", how: "4 bits, blocks of 4096", parameters: () => ({ bits: 4, block: 4096 }) },
  { name: "qsgd", how: "4 bits, blocks of 512", parameters: () => ({ bits: 4, block: 512 }) },
  { name: "scaled-sign", fedBack: true },
  { name: "scaled-sign", how: "blocks of 4096", parameters: () => ({ block: 4096 }) },
  { name: "terngrad", how: "blocks of 4096", parameters: () => ({ block: 4096 }) },
  { name: "int8", how: "blocks of 256", parameters: () => ({ block: 256 }) },
  { name: "bf16", fedBack: true },
  { name: "f16" },
  {
    name: "top-k",
    how: "1 of 1000",
    parameters: (length) => ({ k: Math.ceil(length / 1000) }),
    sparse: true,
    fedBack: true,
  },
  ...(["f32", "f16", "2bit", "sign"] as const).map((values) => ({
    name: "top-k",
    how: `1 of 64, ${values === "f32" ? "" : "Elias–Fano, "}${values}`,
    parameters: (length: number): Parameters => ({
      k: Math.ceil(length / 64),
      ...(values !== "f32" && { indices: "elias-fano", values }),
    }),
    sparse: true as const,
  })),
  { name: "dct-top-k", how: "4 of 64", parameters: () => ({ block: 64, k: 4 }) },
];

const peersOf: Readonly<Record<string, { metric: string; encode: string; decode: string }>> = {
  sign: { metric: "over_numpy", encode: "packbits", decode: "unpackbits" },
  bf16: { metric: "over_torch", encode: "bf16", decode: "bf16 back" },
  f16: { metric: "over_torch", encode: "f16", decode: "f16 back" },
};

export async function* codecs(): AsyncGenerator<Measurement> {
  setNumThreads(1);
  useThreads(1);
  await using peer = await Peer.start("codecs.py", [String(n), String(elements)], { OMP_NUM_THREADS: "1" });
  const ask = async (what: string) => (await peer.ask<{ seconds: number }>(what)).seconds;
  const x = gradients(n);
  const sum = new Float32Array(n).fill(1);
  const streaming = streamingSpeed(n);
  const streams: number[] = [];

  for (const { name, how, parameters = () => ({}), sparse } of configurations) {
    const label = how ? `${name}, ${how}` : name;
    const [best, ...plainer] = codecNamed(name, parameters(n)).kernels();
    const theirs = peersOf[name];
    const rows = [];
    for (let round = -1; round < rounds; round++) {
      const stream = streaming();
      const row = { stream, ...run(best!, x, sum, parameters(n)), encodePeer: 0, decodePeer: 0 };
      if (theirs) Object.assign(row, { encodePeer: await ask(theirs.encode), decodePeer: await ask(theirs.decode) });
      if (round < 0) continue; // warm-up
      rows.push(row);
      streams.push(stream);
    }
    for (const what of directionsOf(sparse)) {
      const measured = `${label} ${what}, ${best!.implementation}`;
      const bytes = 4 * n + rows[0]!.wire;
      yield speed(measured, bytes, median(rows.map((row) => row[what])));
      yield {
        case: measured,
        metric: "over_stream",
        value: median(rows.map((row) => bytes / row[what] / row.stream)),
        unit: "ratio",
      };
      if (theirs) {
        const against = rows.map((row) => row[`${what}Peer`] / row[what]);
        yield { case: measured, metric: theirs.metric, value: median(against), unit: "ratio" };
      }
    }
    for (const kernel of plainer) {
      const length = kernel.implementation === "scalar" || kernel.implementation === "typescript" ? small : n;
      const seconds = Array.from({ length: 3 }, () =>
        run(kernel, x.subarray(0, length), sum.subarray(0, length), parameters(length)),
      );
      for (const what of directionsOf(sparse)) {
        const fastest = Math.min(...seconds.map((row) => row[what]));
        yield speed(`${label} ${what}, ${kernel.implementation}`, 4 * length + seconds[0]!.wire, fastest);
      }
    }
  }
  yield { case: "streaming, one thread", metric: "gb_per_second", value: median(streams) / 1e9, unit: "GB/s" };
  yield* feedback(x, streaming);
  yield* votes(ask);
  yield* threads(x, sum);

  const { local_over_lion } = localWork();
  yield { case: "local work, 64 Mi parameters", metric: "local_over_lion", value: local_over_lion, unit: "ratio" };
}

/** Error feedback reads every float of x and of the error, writes the error, and writes and reads the wire. */
function* feedback(x: Float32Array, streaming: () => number): Generator<Measurement> {
  const error = new Float32Array(n).fill(0);
  for (const { name, how, parameters = () => ({}) } of configurations.filter(({ fedBack }) => fedBack)) {
    const kernel = codecNamed(name, parameters(n)).kernels()[0]!;
    const wire = new Uint8Array(kernel.wireBytes(n, parameters(n))).fill(1);
    const bytes = 8 * n + wire.length;
    const rows = Array.from({ length: rounds }, () => {
      const stream = streaming();
      const encode = clocked(() => kernel.encode(wire, x, parameters(n), call));
      error.fill(0);
      const withError = clocked(() => kernel.encodeWithFeedback!(wire, x, error, parameters(n), call));
      return { seconds: withError, over_stream: bytes / withError / stream, over_encode: withError / encode };
    });
    const measured = `${how ? `${name}, ${how}` : name} with error feedback, ${kernel.implementation}`;
    yield speed(measured, bytes, median(rows.map(({ seconds }) => seconds)));
    for (const metric of ["over_stream", "over_encode"] as const)
      yield { case: measured, metric, value: median(rows.map((row) => row[metric])), unit: "ratio" };
  }
}

async function* votes(ask: (what: string) => Promise<number>): AsyncGenerator<Measurement> {
  const wires = Array.from({ length: 8 }, (_, r) =>
    new Uint8Array(elements / 8).map((_, i) => (Math.imul(i + 1, 2654435761 + r) >>> 13) & 255),
  );
  const out = new Uint8Array(elements / 8);
  for (const kernel of voteKernels()) {
    const sides = {
      ours: () => clocked(() => kernel.majority(out, wires, elements, { tie: "plus" })),
      theirs: () => ask("vote"),
      careful: () => ask("vote in bytes"),
    };
    const { ours, theirs, careful } = await inTurns(sides, rounds);
    const measured = `vote of 8, ${kernel.implementation}`;
    yield speed(measured, (9 * elements) / 8, median(ours));
    yield { case: measured, metric: "over_unpack", value: medianRatio(theirs, ours), unit: "ratio" };
    yield { case: measured, metric: "over_unpack_bytes", value: medianRatio(careful, ours), unit: "ratio" };
  }
  const checked = clocked(() => majority(out, wires, elements, { tie: "plus" }));
  yield speed(`vote of 8 as people call it, ${voteImplementation()}`, (9 * elements) / 8, checked);
}

/** The time of one thread ÷ that of all cores, for the same work. */
function* threads(x: Float32Array, sum: Float32Array): Generator<Measurement> {
  const cores = availableProcessors();
  if (cores === 1) return;
  for (const { name, how, parameters = () => ({}), sparse } of configurations) {
    const kernel = codecNamed(name, parameters(n)).kernels()[0]!;
    const rows = Array.from({ length: 3 }, () => {
      useThreads(1);
      const one = run(kernel, x, sum, parameters(n));
      useThreads(cores);
      const all = run(kernel, x, sum, parameters(n));
      return { encode: one.encode / all.encode, decode: one.decode / all.decode };
    });
    for (const what of directionsOf(sparse)) {
      const measured = `${how ? `${name}, ${how}` : name} ${what}, ${kernel.implementation}, ${cores} threads`;
      yield { case: measured, metric: "over_one_thread", value: median(rows.map((row) => row[what])), unit: "ratio" };
    }
  }
  useThreads(1);
}

/** Seconds to encode and to decode, and the bytes of the wire. */
function run(kernel: CodecKernel, x: Float32Array, sum: Float32Array, parameters: Parameters) {
  const wire = new Uint8Array(kernel.wireBytes(x.length, parameters)).fill(1); // touched before the measurement
  const encode = clocked(() => kernel.encode(wire, x, parameters, call));
  const decode = clocked(() => kernel.decodeAdd(sum, wire, parameters, { scale: 1e-9 }));
  return { encode, decode, wire: wire.length };
}

function gradients(length: number): Float32Array {
  const pattern = Float32Array.from({ length: 65_521 }, (_, i) => Math.sin(i * i + 1) ** 3 / 100);
  const x = new Float32Array(length);
  for (let at = 0; at < length; at += pattern.length) x.set(pattern.subarray(0, length - at), at);
  return x;
}

const speed = (measured: string, bytes: number, seconds: number): Measurement => ({
  case: measured,
  metric: "gb_per_second",
  value: bytes / seconds / 1e9,
  unit: "GB/s",
});
