/**
 * QSGD: levels drawn so that their mean is the gradient. Alistarh, Grubic, Li, Tomioka, Vojnović 2017, "QSGD:
 * Communication-Efficient SGD via Gradient Quantization and Encoding", Algorithm 1, §3.1 and §4,
 * https://arxiv.org/abs/1610.02132
 *
 *   q ← ‖g‖₂ sign(g) ξ / s          for each bucket of elements; ξ: |g| s / ‖g‖₂, randomly rounded up or down
 *   g ← mean_ranks(q)               every rank sends its q to every other one
 *
 * Fields of a fixed width in place of the paper's Elias code. `codec` with qsgd agrees on one norm for all ranks first,
 * and then sends two small messages instead of one to every rank.
 *
 * Shapes: g, q (n)   s = 2^(bits − 1) − 1
 * Sent per step: 1 message, (P − 1) (⌈n bits / 8⌉ + 4 ⌈n / bucket⌉) bytes for each layer.
 */
import { type Codec, qsgd as qsgdCodec } from "@terse/codecs";
import { positiveInteger, v } from "@terse/options";
import { drawsOf, seed } from "../algorithms/draws.ts";
import { define } from "../define.ts";
import type { CompressionRules } from "./gradient-compression.ts";

const options = v.object({
  bits: v.optional(v.pipe(v.number(), v.safeInteger(), v.minValue(2), v.maxValue(8)), 4), // of an element
  bucket: v.optional(positiveInteger, 512), // elements that share a norm; a layer begins a new bucket
  seed,
});

/** QSGD: randomly rounded levels, whose mean is the gradient. Alistarh et al. 2017, Algorithm 1, §3.1 and §4. */
export const qsgd = define({
  name: "qsgd",
  options,

  create({ bits, bucket, seed }): CompressionRules {
    const codec = qsgdCodec({ bits, block: bucket }) as Codec;
    return {
      splits: "at segments",

      init: () => ({}),

      async mean(g, _, exchange, context) {
        await exchange.sparse(g, { codec, ...drawsOf(seed, context) });
      },

      messages: ({ n }) => [{ kind: "sparse", n, codec }],
    };
  },
});
