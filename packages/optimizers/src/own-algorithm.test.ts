/** An algorithm that somebody defines in a project of their own: only from what the packages export. */
import { loopback } from "@terse/collectives";
import { nonNegative, v } from "@terse/options";
import { Arena, Linear, noGrad, scope, type Tensor, zerosLike } from "@terse/tensor";
import { expect, it } from "vitest";
import { define, Optimizer, type Rules, type State } from "./index.ts";

interface AdagradState extends State {
  readonly elements: { G: Tensor };
}

/** Duchi et al. 2011: G ← G + g², θ ← θ − η g / (√G + ε) */
const adagrad = define({
  name: "adagrad",
  options: v.object({ eps: v.optional(nonNegative, 1e-10) }),

  create: ({ eps }): Rules<AdagradState> => ({
    splits: "anywhere",
    takesMean: true,

    init: (θ) => ({ elements: { G: zerosLike(θ) } }),

    async step(θ, g, { elements: { G } }, exchange, { lr }) {
      const gradientScale = await exchange.meanGradient(g);
      await exchange.agreed();
      const change = () => {
        const d = g.mul(gradientScale);
        G.add_(d.square());
        θ.add_(d.div(G.sqrt().add(eps)), { alpha: -lr });
      };
      noGrad(() => scope(change));
    },

    messages: () => [{ kind: "meanGradient" }],
  }),
});

it("is taken by an Optimizer as those of the package are", async () => {
  const results = await Promise.all(
    loopback(2).map(async (group) => {
      const model = new Linear(2, 1, { bias: false });
      const arena = new Arena(model);
      arena.parameters.fill_(0);
      await using optimizer = new Optimizer(arena, group, { algorithm: adagrad({ eps: 0 }) });
      for (let step = 0; step < 2; step++) {
        await scope(() =>
          model.weight
            .mul(group.rank + 1)
            .sum()
            .backward(),
        ); // the mean gradient is 1.5
        await optimizer.step({ lr: 0.5 });
        arena.replaceGradients();
      }
      await group.close();
      return (await model.weight.toTypedArray()) as Float32Array;
    }),
  );
  for (const result of results) for (const value of result) expect(value).toBeCloseTo(-0.5 * (1 + Math.SQRT1_2)); // −η (1 + 1/√2)
});
