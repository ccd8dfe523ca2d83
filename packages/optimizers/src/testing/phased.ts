/**
 * For tests: the phases of 1-bit Adam and 1-bit LAMB, without their algebra.
 *
 *   t < 3        g ← mean_ranks(g),  m ← m/2 + g/2,  θ ← θ − η m,  c ← c + 1
 *   t = 3, 5, …  m ← m/2 + g/2,  m ← error-compensated mean,  θ ← θ − η m
 *   t = 4, 6, …  m ← m/2,  θ ← θ − η m                                        a local step: no message
 */
import { type Codec, scaledSign } from "@terse/codecs";
import { ownedRange } from "@terse/exchange";
import { noGrad, type Tensor, zeros, zerosLike } from "@terse/tensor";
import type { Algorithm, OwnedShare, State, Vector } from "../index.ts";

export interface PhasedState extends State {
  readonly elements: { m: Tensor; workerError: Tensor };
  readonly owned: { serverError: OwnedShare };
  readonly scalars: { c: number; seen: number[] };
}

const warmup = 3; // steps

const codecs = new WeakMap<Vector, Codec>();

/** One scale for each layer and each pad: a pad's is 0, so pads stay 0. */
function codecOf(vector: Vector): Codec {
  const codec = codecs.get(vector) ?? (scaledSign({ segments: vector.lengths }) as Codec);
  codecs.set(vector, codec);
  return codec;
}

export function phased(): Algorithm<PhasedState> {
  return {
    name: "phased",
    splits: "anywhere",

    init(θ, vector) {
      const [begin, end] = ownedRange(vector.n, vector.ranks, vector.rank, codecOf(vector));
      return {
        elements: { m: zerosLike(θ), workerError: zerosLike(θ) },
        owned: { serverError: { begin, values: zeros([end - begin]), alone: "workerError" } },
        scalars: { c: 0, seen: [] },
      };
    },

    async step(θ, g, { elements: { m, workerError }, owned, scalars }, exchange, { step, lr, gradientScale, vector }) {
      if (step < warmup) {
        const scale = await exchange.meanGradient(g);
        noGrad(() => m.mul_(0.5).add_(g, { alpha: scale / 2 }));
        scalars.c++;
      } else if (step % 2 === 1) {
        noGrad(() => m.mul_(0.5).add_(g, { alpha: gradientScale / 2 }));
        const errors = { workerError, serverError: owned.serverError.values };
        await exchange.meanErrorCompensated(m, { codec: codecOf(vector), ...errors });
      } else noGrad(() => m.mul_(0.5));
      scalars.seen = [...scalars.seen, step].slice(-2);
      await exchange.agreed();
      noGrad(() => θ.sub_(m, { alpha: lr }));
    },

    messages(vector, step) {
      if (step < warmup) return [{ kind: "meanGradient" }];
      return step % 2 === 1 ? [{ kind: "meanErrorCompensated", n: vector.n, codec: codecOf(vector) }] : [];
    },
  };
}
