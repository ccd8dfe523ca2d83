import { Arena, bf16Units, call, fromTypedArray, Linear, ModuleList, noGrad, type Tensor, tensor } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { needsPython, python, runPython } from "../../../tensor/src/testing/python.ts";
import { adamw, compressed, muon, Optimizer, powersgd, type StoredState, terngrad } from "../index.ts";
import { largestDifference, type Matrix, matrix, meanOf, product, rowsOf, transposed } from "../testing/matrices.ts";
import { iterated, standard } from "../testing/newton-schulz.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { layerRanges, matrixShapes, type Oracle, optimizerContract } from "../testing/optimizer-contract.ts";
import { stored } from "../testing/stored.ts";
import { type Gradients, noise, trainMatrices } from "../testing/train-matrices.ts";
import { resultOf } from "./kernels.ts";
import { newtonSchulz } from "./newton-schulz.ts";

const shapes = Object.values(matrixShapes) as unknown as [number, number][];
type Triple = [number, number, number];
const fiveTimes = new Array<Triple>(5).fill(standard);

// Maps of singular values, computed in float64: the polynomial five times, with each list of coefficients.
const maps: Record<string, { coefficients: Triple[]; larger: number; to: number[] }> = {
  standard: {
    coefficients: fiveTimes,
    larger: 1,
    to: [0.470544, 0.698917, 0.75812, 0.71212, 1.079592, 0.765439, 1.120323, 0.682011, 0.696436],
  },
  "one triple for each iteration, as microsoft/dion's Newton–Schulz": {
    coefficients: [
      [4.0848, -6.8946, 2.927],
      [3.9505, -6.3029, 2.6377],
      [3.7418, -5.5913, 2.3037],
      [2.8769, -3.1427, 1.2046],
      [2.8366, -3.0525, 1.2012],
    ],
    larger: 1,
    to: [0.474982, 1.018025, 1.010644, 1.01905, 0.996224, 0.985869, 1.013685, 0.979914, 0.978346],
  },
  // Amsel et al. 2025, https://arxiv.org/abs/2505.16932, with the margin of 2 % of modded-nanogpt and microsoft/dion
  "Polar Express": {
    coefficients: [
      [8.156554524902461, -22.48329292557795, 15.878769915207462],
      [4.042929935166739, -2.808917465908714, 0.5000178451051316],
      [3.8916678022926607, -2.772484153217685, 0.5060648178503393],
      [3.285753657755655, -2.3681294933425376, 0.46449024233003106],
      [2.3465413258596377, -1.7097828382687081, 0.42323551169305323],
    ],
    larger: 1.02,
    to: [0.846647, 0.996775, 0.862474, 1.016459, 1.129064, 1.086403, 1.008673, 1.057436, 0.903537],
  },
};

/** With μ 1/2 and λ 1/4. */
function oracle({ nesterov, scale }: { nesterov: boolean; scale: (m: number, n: number) => number }): Oracle {
  const momenta = shapes.map(([m, n]) => matrix(m, n, () => 0));
  return (θ, g, { lr }) => {
    for (const [k, [begin]] of layerRanges().entries()) {
      const [m, n] = shapes[k]!;
      const mean = meanOf(g.map((of) => rowsOf(of, [m, n], begin)));
      const half = (a: Matrix, b: Matrix) => matrix(m, n, (i, j) => (a[i]![j]! + b[i]![j]!) / 2);
      momenta[k] = half(momenta[k]!, mean);
      const U = iterated(nesterov ? half(momenta[k]!, mean) : momenta[k]!);
      for (let i = 0; i < m * n; i++)
        θ[begin + i] = (1 - lr * 0.25) * θ[begin + i]! - lr * scale(m, n) * U[Math.floor(i / n)]![i % n]!;
    }
  };
}

const exact = { nsType: "f32" } as const;
const original = (m: number, n: number) => Math.sqrt(Math.max(1, m / n));

optimizerContract("muon", {
  create: () => muon({ ...exact, momentum: 0.5, weightDecay: 0.25 }),
  oracle: () => oracle({ nesterov: true, scale: original }),
});

optimizerContract("muon without Nesterov, with AdamW's learning rate", {
  create: () => muon({ ...exact, momentum: 0.5, weightDecay: 0.25, nesterov: false, adjustLrFn: "match_rms_adamw" }),
  oracle: () => oracle({ nesterov: false, scale: (m, n) => 0.2 * Math.sqrt(Math.max(m, n)) }),
});

optimizerContract("muon with a dense mean that all ranks have, as compressions leave one", {
  create: () => compressed(muon({ ...exact, momentum: 0.5, weightDecay: 0.25 }), powersgd({ startPowerSGDIter: 1000 })),
  oracle: () => oracle({ nesterov: true, scale: original }),
});

for (const compression of [() => powersgd({ minCompressionRate: 1 }), terngrad])
  optimizerContract(`muon with ${compression().name}`, { create: () => compressed(muon(exact), compression()) });

const rows = async (x: Tensor) =>
  rowsOf((await x.contiguous().toTypedArray()) as Float64Array, x.shape as [number, number]);

describe("newtonSchulz", () => {
  it.each(Object.entries(maps))("maps singular values as the scalar polynomials do, %s", async (_, map) => {
    const { to, larger: s } = map;
    const [[a, b, c], ...others] = map.coefficients as [Triple, ...Triple[]];
    const coefficients = [[a / s, b / s ** 3, c / s ** 5] as Triple, ...others];
    for (const [i, σ] of [0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 1].entries())
      for (const dtype of ["f64", "f32"] as const) {
        const diagonal = [
          [σ, 0],
          [0, Math.sqrt(1 - σ * σ)], // of norm 1
        ];
        const [[first]] = (await rows(newtonSchulz(tensor(diagonal, { dtype }), { coefficients, eps: 1e-7 }))) as [
          [number],
        ];
        // The values have six digits; in f32 the polynomials' slopes enlarge what is rounded on the way.
        expect(Math.abs(first - to[i]!), `${σ} in ${dtype}`).toBeLessThan(dtype === "f64" ? 5.1e-7 : 1e-5);
      }
  });

  it("converges to orthonormal rows with convergent coefficients", async () => {
    const convergent = new Array<[number, number, number]>(20).fill([2, -1.5, 0.5]);
    for (const [m, n] of [
      [5, 9],
      [9, 5],
      [6, 6],
    ] as const) {
      const G = fromTypedArray(
        Float32Array.from({ length: m * n }, (_, i) => Math.sin(i * i)),
        [m, n],
      );
      const X = await rows(newtonSchulz(G, { coefficients: convergent, eps: 1e-7 }));
      const gram = m > n ? product(transposed(X), X) : product(X, transposed(X));
      for (const [i, row] of gram.entries())
        for (const [j, x] of row.entries()) expect(Math.abs(x - (i === j ? 1 : 0))).toBeLessThan(1e-5);
    }
  });

  it.each([
    ["five iterations", fiveTimes],
    ["Polar Express", maps["Polar Express"]!.coefficients],
    ["ten iterations", [...fiveTimes, ...fiveTimes]], // X Xᵀ is computed anew; if not: 0.02
    ["one iteration", [standard]],
  ])("maps the singular values of wide matrices so too, from X Xᵀ alone: %s", (_, coefficients) => {
    for (const [m, n] of [
      [128, 256],
      [400, 130],
      [150, 700],
    ] as const) {
      const least = Math.min(m, n);
      const basis = (rows: number) => {
        const values = Float64Array.from({ length: rows * least }, (_, i) => Math.sin(i * i));
        return (call("aten::linalg_qr", fromTypedArray(values, [rows, least])) as Tensor[])[0]!;
      };
      const [U, V] = [basis(m), basis(n)];
      const σ = Array.from({ length: least }, (_, i) => 1e-3 ** (i / (least - 1)));
      const G = U.mul(tensor(σ, { dtype: "f64" })).matmul(V.transpose(0, 1));
      const X = newtonSchulz(G.to("f32"), { coefficients, eps: 1e-7 });
      const to = σ.map((each) =>
        coefficients.reduce((x, [a, b, c]) => a * x + b * x ** 3 + c * x ** 5, each / Math.hypot(...σ)),
      );
      const difference = U.transpose(0, 1)
        .matmul(X.to("f64"))
        .matmul(V)
        .sub(call("aten::diag", tensor(to, { dtype: "f64" })) as Tensor);
      expect(difference.abs().max().item(), `${m} × ${n}`).toBeLessThan(2e-3);
    }
  });

  it("gives a transposed matrix the transposed result", async () => {
    const G = fromTypedArray(
      Float32Array.from({ length: 12 }, (_, i) => Math.cos(3 * i)),
      [3, 4],
    );
    const options = { coefficients: fiveTimes, eps: 1e-7 };
    const [X, turned] = [await rows(newtonSchulz(G, options)), await rows(newtonSchulz(G.transpose(0, 1), options))];
    expect(transposed(turned)).toEqual(X);
  });

  it("computes large products from blocks on and below the diagonal: the same to rounding", async () => {
    const [m, n] = [1041, 1031];
    const G = fromTypedArray(
      Float64Array.from({ length: m * n }, (_, i) => Math.sin(i * i)),
      [m, n],
    );
    const [a, b, c] = standard;
    using X = noGrad(() => newtonSchulz(G, { coefficients: [standard], eps: 1e-7 }));
    using difference = resultOf(() => {
      const Y = G.div(G.norm());
      const A = Y.matmul(Y.transpose(0, 1));
      const B = A.mul(b).add(A.matmul(A), { alpha: c });
      return Y.mul(a).add(B.matmul(Y)).sub(X).abs().max();
    });
    expect(difference.item()).toBeLessThan(1e-13);
  });

  it("leaves a gradient of 0 at 0", async () => {
    const X = await rows(
      newtonSchulz(
        tensor([
          [0, 0],
          [0, 0],
        ]),
        { coefficients: fiveTimes, eps: 1e-7 },
      ),
    );
    expect(X.flat().every((x) => x === 0)).toBe(true);
  });
});

describe("muon", () => {
  const shapes = [
    [16, 8],
    [8, 16],
    [8, 8],
  ] as const;
  const own: Gradients = (rank, step, layer) => noise(shapes[layer]![0] * shapes[layer]![1], rank, step, layer);

  /** torch.optim.Muon on the mean gradient; `dtype` replaces the bf16 of its iterations. */
  async function reference(layer: number, steps: number, options: string, dtype: "double" | "bfloat16") {
    const [m, n] = shapes[layer]!;
    const G = Array.from({ length: steps }, (_, t) =>
      [0, 1].flatMap((rank) => [...(own(rank, t, layer) as Float32Array)]),
    );
    const { X } = await runPython(
      `
bfloat16 = torch.Tensor.bfloat16
if "${dtype}" == "double": torch.Tensor.bfloat16 = lambda x: x.double().clone()
try:
    X = nn.Parameter(inputs["X"].${dtype === "double" ? "double" : "float"}())
    optimizer = torch.optim.Muon([X], lr=0.02, ${options})
    for g in inputs["G"]:
        X.grad = g.to(X.dtype).mean(0)
        optimizer.step()
finally:
    torch.Tensor.bfloat16 = bfloat16
outputs["X"] = X.detach().double()`,
      {
        G: fromTypedArray(Float32Array.from(G.flat()), [steps, 2, m, n]),
        X: fromTypedArray(noise(m * n, 77, layer), [m, n]),
      },
    );
    return rowsOf((await X!.toTypedArray()) as Float64Array, [m, n]);
  }

  it.skipIf(!python).each([
    ["", {}],
    ["nesterov=False, momentum=0.8, weight_decay=0", { nesterov: false, momentum: 0.8, weightDecay: 0 }],
    ['adjust_lr_fn="match_rms_adamw", ns_steps=3', { adjustLrFn: "match_rms_adamw", nsSteps: 3 }],
    [
      "ns_coefficients=(2, -1.5, 0.5), eps=1e-3",
      { nsCoefficients: [2, -1.5, 0.5] as [number, number, number], eps: 1e-3 },
    ],
  ] as const)(`stays with torch.optim.Muon(%s), in float64, over 100 steps${needsPython}`, async (torch, options) => {
    const all = await trainMatrices(
      2,
      () => muon({ ...exact, ...options } as Parameters<typeof muon>[0]),
      shapes,
      own,
      {
        steps: 100,
        lr: 0.02,
      },
    );
    for (const layer of shapes.keys()) {
      const expected = await reference(layer, 100, torch, "double");
      // Rounding of 100 updates of size 0.02 in f32, each of five iterations.
      for (const visited of all) expect(largestDifference(visited.at(-1)!.X[layer]!, expected)).toBeLessThan(5e-6);
    }
  });

  it.skipIf(!python)(`iterates in bf16 as torch.optim.Muon does${needsPython}`, async () => {
    const [visited] = await trainMatrices(2, () => muon({ nsType: "bf16" }), shapes, own, { steps: 5, lr: 0.02 });
    for (const layer of shapes.keys()) {
      const expected = await reference(layer, 5, "", "bfloat16");
      const got = visited!.at(-1)!.X[layer]!;
      // A few of bf16's units, 2⁻⁸, in each update.
      expect(largestDifference(got, expected)).toBeLessThan(5 * 0.02 * 2 ** -6);
      expect(got).not.toEqual(visited![0]!.X[layer]);
    }
  });

  it("iterates by itself in bf16 where the processor multiplies it fast, and in f32 elsewhere", async () => {
    const run = async (options: Parameters<typeof muon>[0]) =>
      (await trainMatrices(2, () => muon(options), shapes, own, { steps: 2, lr: 0.02 }))[0]!.at(-1)!.X;
    expect(await run({})).toEqual(await run({ nsType: bf16Units("cpu") ? "bf16" : "f32" }));
    expect(await run({ nsType: "bf16" })).not.toEqual(await run({ nsType: "f32" }));
  });

  it("takes one triple for all iterations, or a triple for each", async () => {
    const run = async (options: Parameters<typeof muon>[0]) =>
      (await trainMatrices(2, () => muon({ ...exact, ...options }), shapes, own, { steps: 2, lr: 0.02 }))[0]!.at(-1)!.X;
    const { coefficients } = maps["Polar Express"]!;
    expect(await run({ nsCoefficients: fiveTimes })).toEqual(await run({}));
    expect(await run({ nsCoefficients: coefficients.slice(0, 3) })).not.toEqual(
      await run({ nsCoefficients: coefficients }),
    );
    expect(() => muon({ nsCoefficients: coefficients, nsSteps: 4 })).toThrow(
      "muon.nsSteps: nsCoefficients has a triple for each of 5 iterations, and nsSteps is 4; leave nsSteps out",
    );
    for (const wrong of [[], [1, 2], [[1, 2, 3], 4]])
      expect(() => muon({ nsCoefficients: wrong as never })).toThrow(
        /muon\.nsCoefficients.*: expected a (number|list of 3 \(each a number\))/,
      );
  });

  // Linear layers, whose matrices have Muon and whose vectors AdamW; a compression that has not begun sends its means
  // as they are.
  const inFull = () => powersgd({ startPowerSGDIter: 1000 });
  it.skipIf(!python).each([
    [1, "none compressed", muon, adamw],
    [2, "none compressed", muon, adamw],
    [3, "none compressed", muon, adamw],
    [3, "AdamW's compressed", muon, (options: object) => compressed(adamw(options), inFull())],
    [3, "Muon's compressed", (options: object) => compressed(muon(options), inFull()), adamw],
  ] as const)(
    `clips the mean of all gradients as DDP's does, AdamW's with Muon's, on %i ranks, %s${needsPython}`,
    async (ranks, _, createMuon, createAdamw) => {
      const [steps, clip] = [30, 0.5];
      const model = () => new ModuleList([new Linear(8, 16), new Linear(16, 4), new Linear(4, 4)]);
      const { length } = new Arena(model()).parameters;
      const g = (rank: number, step: number) => noise(length, rank, step).map((v) => v * (step % 3 === 0 ? 0.03 : 0.3));
      const trained = await onRanks(ranks, async (group) => {
        const arena = new Arena(model());
        await using optimizer = new Optimizer(arena, group, {
          algorithm: createMuon({ ...exact, eps: 0.2 }), // a norm below eps shows in the update
          groups: [{ match: ({ role }) => role !== "matrix", algorithm: createAdamw({ eps: 0.01 }) }],
          ...{ clip, bucket: 100 },
        });
        const segments = arena.segments.map(({ offset, length, shape }) => ({ offset, length, shape }));
        const [norms, sent] = [[] as number[], [] as number[]];
        noGrad(() => arena.parameters.copy_(fromTypedArray(noise(length, 77))));
        for (let step = 0; step < steps; step++) {
          const given = g(group.rank, step);
          noGrad(() => {
            for (const { offset, length } of segments)
              arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(given.slice(offset, offset + length)));
          });
          const closed = optimizer.bytesSent();
          const { gradientNorm, bytes, messages } = await optimizer.step({ lr: 0.02 });
          norms.push(gradientNorm);
          sent.push(bytes - 32 * messages - closed);
        }
        const θ = (await arena.parameters.toTypedArray()) as Float32Array;
        return {
          θ: segments.map(({ offset, length }) => [...θ.subarray(offset, offset + length)]),
          norms,
          sent,
          segments,
        };
      });
      const [{ θ, norms, segments }] = trained as [(typeof trained)[number]];
      for (const other of trained) {
        expect(other.θ).toEqual(θ);
        expect(other.norms).toEqual(norms);
        expect(other.sent).toEqual(norms.map(() => 0));
      }

      const G = Array.from({ length: steps * ranks }, (_, i) => [...g(i % ranks, Math.floor(i / ranks))]).flat();
      const reference = await runPython(
        `
bfloat16 = torch.Tensor.bfloat16
torch.Tensor.bfloat16 = lambda x: x.double().clone()
begin, G = inputs["start"].double(), inputs["G"].double()
segments = [${segments.map(({ offset, length, shape }) => `(${offset}, ${length}, (${shape.join(", ")},))`).join(", ")}]
parameters = [nn.Parameter(begin[at:at + n].view(shape).clone()) for at, n, shape in segments]
optimizers = [
    torch.optim.Muon([p for p in parameters if p.ndim == 2], lr=0.02, eps=0.2),
    torch.optim.AdamW([p for p in parameters if p.ndim == 1], lr=0.02, betas=(0.9, 0.999), eps=0.01, weight_decay=0.01),
]
norms = []
for g in G:
    for p, (at, n, shape) in zip(parameters, segments): p.grad = g.mean(0)[at:at + n].view(shape)
    norms.append(nn.utils.clip_grad_norm_(parameters, ${clip}))
    for optimizer in optimizers: optimizer.step()
torch.Tensor.bfloat16 = bfloat16
outputs["X"] = torch.cat([p.detach().flatten() for p in parameters])
outputs["norms"] = torch.stack(norms)`,
        {
          G: fromTypedArray(Float32Array.from(G), [steps, ranks, length]),
          start: fromTypedArray(noise(length, 77)),
        },
      );
      const expected = [...((await reference["X"]!.toTypedArray()) as Float64Array)];
      const rounding = 5e-6; // of 30 updates of size 0.02 in f32, each of five iterations
      expect(Math.max(...θ.flat().map((v, i) => Math.abs(v - expected[i]!)))).toBeLessThan(rounding);
      const expectedNorms = [...((await reference["norms"]!.toTypedArray()) as Float64Array)];
      for (const [step, norm] of norms.entries()) expect(norm / expectedNorms[step]! - 1).toBeCloseTo(0, 5);
      expect(Math.min(...norms)).toBeLessThan(clip);
      expect(Math.max(...norms)).toBeGreaterThan(2 * clip);
    },
  );

  it("keeps each momentum on one rank, and shares the matrices by their sizes", async () => {
    const many = [...shapes, ...shapes, [4, 4]] as const;
    const all = await trainMatrices(
      3,
      () => muon(),
      many,
      (rank, step, layer) => noise(many[layer]![0] * many[layer]![1], rank, step, layer),
      { steps: 2 },
    );
    const owned = all.map((visited) =>
      [...visited.at(-1)!.state.values()].reduce((sum, { length }) => sum + length, 0),
    );
    expect(owned.reduce((a, b) => a + b)).toBe(many.reduce((sum, [m, n]) => sum + m * n, 0));
    expect(Math.max(...owned) - Math.min(...owned)).toBeLessThanOrEqual(64);
    for (const visited of all) expect(visited.at(-1)!.X).toEqual(all[0]!.at(-1)!.X);
  });

  it("carries its momenta to another number of ranks, whose owners are others", async () => {
    const momenta = (saves: readonly StoredState[]) =>
      new Map(
        saves
          .flatMap(({ tensors }) =>
            [...tensors].map(([name, values]) => [name, [...(values as Float32Array)]] as const),
          )
          .sort(),
      );
    const before = await onRanks(2, async (group) => {
      const arena = new Arena(new ModuleList([1, 2, 3].map(() => new Linear(4, 4, { bias: false }))));
      const optimizer = new Optimizer(arena, group, { algorithm: muon() });
      noGrad(() => arena.gradients.copy_(fromTypedArray(noise(arena.gradients.length, group.rank))));
      await optimizer.step({ lr: 0.01 });
      return stored(optimizer);
    });
    const after = await onRanks(3, async (group) => {
      const arena = new Arena(new ModuleList([1, 2, 3].map(() => new Linear(4, 4, { bias: false }))));
      const optimizer = new Optimizer(arena, group, { algorithm: muon() });
      await optimizer.restore(1, before);
      return stored(optimizer);
    });
    expect(after.map(({ tensors }) => tensors.size)).toEqual([1, 1, 1]);
    expect(momenta(after)).toEqual(momenta(before));
  });
});
