import { readFileSync } from "node:fs";
import { afterAll, describe, expect, it } from "vitest";
import {
  call,
  full,
  linear,
  manualSeed,
  numThreads,
  randn,
  rmsNorm,
  scope,
  setNumThreads,
  swiglu,
  type Tensor,
  tensor,
} from "../index.ts";
import { relativeError } from "../testing/python.ts";

/** The result and the gradients of all inputs, for an upstream gradient that differs in every element. */
async function withGradients(inputs: readonly Tensor[], forward: (...inputs: Tensor[]) => Tensor): Promise<Tensor[]> {
  const own = inputs.map((x) => {
    const leaf = x.detach().clone();
    leaf.requiresGrad = true;
    return leaf;
  });
  const y = forward(...own);
  const upstream = call("aten::linspace", 0.5, 2, y.length).view(y.shape) as Tensor;
  await y.mul(upstream).sum().backward();
  return [y, ...own.map(({ grad }) => grad!)];
}

/** Compares a fused operator in f32 with ATen's operators in f64. */
async function compare(
  inputs: readonly Tensor[],
  fused: (...inputs: Tensor[]) => Tensor,
  aten: (...inputs: Tensor[]) => Tensor,
): Promise<void> {
  const [got, expected] = [
    await withGradients(inputs, fused),
    await withGradients(
      inputs.map((x) => x.to("f64")),
      aten,
    ),
  ];
  for (const [i, x] of got.entries()) {
    expect(x.shape).toEqual(expected[i]!.shape);
    if (x.length > 0) expect(relativeError(x.to("f64"), expected[i]!), `${i} of ${x.shape}`).toBeLessThan(2e-6);
  }
}

const norm = (x: Tensor, γ: Tensor) => rmsNorm(x, γ, { eps: 1e-5 });
const atenNorm = (x: Tensor, γ: Tensor) => call("aten::rms_norm", x, [γ.length], γ, 1e-5) as Tensor;
const atenSwiglu = (gate: Tensor, up: Tensor) => gate.silu().mul(up);

const floats = async (x: Tensor) => (await x.contiguous().toTypedArray()) as Float32Array;
const bits = async (x: Tensor) => new Uint32Array((await floats(x)).buffer);

describe("rmsNorm", () => {
  it("gives ATen's result and gradients, for many widths, and for fewer and more rows than one block", () =>
    scope(async () => {
      manualSeed(1);
      for (const width of [...Array.from({ length: 39 }, (_, i) => i + 2), 63, 64, 65, 256])
        await compare([randn([3, width]), randn([width])], norm, atenNorm);
      for (const rows of [1, 63, 64, 65, 128, 200]) await compare([randn([rows, 20]), randn([20])], norm, atenNorm);
      await compare([randn([2, 3, 5, 16]), randn([16])], norm, atenNorm);
    }));

  it("gives the same for tensors that are not contiguous", () =>
    scope(async () => {
      const across = (f: typeof norm) => (x: Tensor, γ: Tensor) => f(x.transpose(0, 1), γ).transpose(0, 1);
      await compare([randn([6, 70, 24]), randn([24])], across(norm), across(atenNorm));
    }));

  it("works without a weight, without eps and with another dtype, as ATen's does", () =>
    scope(async () => {
      const x = randn([4, 6]);
      await compare(
        [x],
        (x) => rmsNorm(x),
        (x) => call("aten::rms_norm", x, [6], null, null),
      );
      await compare(
        [x, randn([6])],
        (x, γ) => rmsNorm(x, γ),
        (x, γ) => call("aten::rms_norm", x, [6], γ, null),
      );
      await compare([x.to("f64"), randn([6]).to("f64")], norm, atenNorm);
      expect(rmsNorm(randn([0, 6]), randn([6])).shape).toEqual([0, 6]);
    }));

  it("reports a weight of another width", () =>
    scope(() => {
      expect(() => rmsNorm(randn([4, 6]), randn([5]))).toThrow(/rms_norm\(x: f32\[4, 6\], weight: f32\[5\]\)/);
    }));
});

describe("linear", () => {
  const byOnednn = (...inputs: Tensor[]) =>
    call("terse::linear", inputs[0], inputs[1], inputs[2] ?? null, true) as Tensor;
  const aten = (...inputs: Tensor[]) => call("aten::linear", inputs[0], inputs[1], inputs[2] ?? null) as Tensor;

  it("gives ATen's result and gradients by oneDNN, with and without a bias, for every number of dimensions", () =>
    scope(async () => {
      manualSeed(1);
      for (const shape of [[7], [1, 7], [5, 7], [2, 3, 5, 7]]) {
        await compare([randn(shape), randn([4, 7])], byOnednn, aten);
        await compare([randn(shape), randn([4, 7]), randn([4])], byOnednn, aten);
      }
      await compare([randn([128, 200]), randn([90, 200]), randn([90])], byOnednn, aten);
      await compare([randn([0, 7]), randn([4, 7])], byOnednn, aten);
    }));

  it("takes oneDNN on AMD from Zen 5 on, and on no other processor, so that every run has the same bits", () => {
    const cpu = process.arch === "x64" ? readFileSync("/proc/cpuinfo", "utf8") : "";
    const zen5OrLater = cpu.includes("AuthenticAMD") && Number(/^cpu family\s*: (\d+)/m.exec(cpu)?.[1]) >= 26;
    scope(() => {
      manualSeed(1);
      const [x, weight] = [randn([256, 256]), randn([192, 256])];
      const [chosen, expected] = [linear(x, weight), (zen5OrLater ? byOnednn : aten)(x, weight)];
      expect(chosen.sub(expected).abs().max().item()).toBe(0);
    });
  });

  it("gives ATen's result and gradients for matrices so large that the faster multiplication is chosen", () =>
    scope(async () => {
      manualSeed(1);
      await compare([randn([2, 128, 256]), randn([192, 256]), randn([192])], linear as typeof byOnednn, aten);
    }));

  it("gives the same for tensors that are not contiguous", () =>
    scope(async () => {
      const across = (f: typeof aten) => (x: Tensor, w: Tensor) =>
        f(x.transpose(0, 1), w.transpose(0, 1)).transpose(0, 1);
      await compare([randn([6, 70, 24]), randn([24, 10])], across(byOnednn), across(aten));
    }));

  it("computes only the gradients that are asked for", () =>
    scope(async () => {
      const [x, weight] = [randn([5, 7]), randn([4, 7])];
      weight.requiresGrad = true;
      await byOnednn(x, weight).sum().backward();
      expect(x.grad).toBeNull();
      expect(weight.grad!.shape).toEqual([4, 7]);
    }));

  it("takes other dtypes, and refuses shapes that do not fit, as ATen's does", () =>
    scope(async () => {
      await compare([randn([5, 7]).to("f64"), randn([4, 7]).to("f64")], byOnednn, aten);
      expect(() => linear(randn([5, 7]), randn([4, 6]))).toThrow(/linear\(x: f32\[5, 7\], weight: f32\[4, 6\]\)/);
    }));
});

describe("swiglu", () => {
  it("gives silu(gate) ⊙ up and its gradients, for many lengths", () =>
    scope(async () => {
      manualSeed(2);
      for (const n of [...Array.from({ length: 40 }, (_, i) => i + 1), 63, 64, 65, 1000, 100_003])
        await compare([randn([n]).mul(4), randn([n])], swiglu, atenSwiglu);
      expect(swiglu(randn([0]), randn([0])).shape).toEqual([0]);
    }));

  it("gives the same for tensors that are not contiguous, and for another dtype", () =>
    scope(async () => {
      const across = (f: typeof swiglu) => (g: Tensor, u: Tensor) => f(g.transpose(0, 1), u);
      await compare([randn([30, 7]), randn([7, 30])], across(swiglu), across(atenSwiglu));
      await compare([randn([30]).to("f64"), randn([30]).to("f64")], swiglu, atenSwiglu);
    }));

  it("saturates, and propagates infinity and NaN", () =>
    scope(async () => {
      const gate = tensor([-200, -100, -80, -0, 0, 80, 100, 200, Number.POSITIVE_INFINITY, Number.NaN]);
      const y = [...(await floats(swiglu(gate, tensor(Array.from({ length: 10 }, () => 1)))))];
      for (const small of y.slice(0, 5)) expect(Math.abs(small)).toBeLessThan(1e-32);
      expect(y.slice(5)).toEqual([80, 100, 200, Number.POSITIVE_INFINITY, Number.NaN]);
    }));
});

describe("fused operators", () => {
  const threads = numThreads();
  afterAll(() => setNumThreads(threads));

  it("give the same bits on one thread and on several", () =>
    scope(async () => {
      manualSeed(3);
      const [x, γ, gate, up] = [randn([1000, 130]), randn([130]), randn([200_003]), randn([200_003])];
      const all = async (n: number) => {
        setNumThreads(n);
        return Promise.all(
          [...(await withGradients([x, γ], norm)), ...(await withGradients([gate, up], swiglu))].map(bits),
        );
      };
      const alone = await all(1);
      for (const n of [2, 3]) expect(await all(n)).toEqual(alone);
    }));
});

describe("all_finite", () => {
  const largest = { f64: Number.MAX_VALUE, f32: (2 - 2 ** -23) * 2 ** 127, f16: 65504, bf16: (2 - 2 ** -7) * 2 ** 127 };

  it.each(Object.entries(largest))("says what isfinite says: %s, at each place of several lengths", (dtype, most) =>
    scope(() => {
      for (const length of [0, 1, 15, 67, 300, 200_003]) {
        const x = full([length], -most, { dtype: dtype as keyof typeof largest });
        expect(call("terse::all_finite", x)).toBe(true);
        for (const at of new Set([0, 14, 66, 255, 299, length - 1].filter((place) => place >= 0 && place < length)))
          for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, 0])
            scope(() => {
              const changed = x.clone();
              call("aten::fill_.Scalar", changed.narrow(0, at, 1), value);
              const expected = (call("aten::isfinite", changed).all() as Tensor).item();
              expect([dtype, length, at, value, call("terse::all_finite", changed)]).toEqual([
                dtype,
                length,
                at,
                value,
                Boolean(expected),
              ]);
            });
      }
    }),
  );

  it("takes strided tensors and integers", () =>
    scope(() => {
      const x = tensor([
        [1, Number.NaN],
        [2, 3],
      ]);
      expect(call("terse::all_finite", x.narrow(1, 0, 1))).toBe(true);
      expect(call("terse::all_finite", x.narrow(1, 1, 1))).toBe(false);
      expect(call("terse::all_finite", tensor([1, 2]).to("i64"))).toBe(true);
    }));
});
