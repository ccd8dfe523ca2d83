import { describe, expect, it } from "vitest";
import {
  AdaptiveAvgPool2d,
  AvgPool2d,
  arange,
  BatchNorm2d,
  CausalSelfAttention,
  Conv2d,
  call,
  crossEntropy,
  Dropout,
  dropout,
  Embedding,
  GELU,
  GroupNorm,
  type Layer,
  LayerNorm,
  Linear,
  layerNorm,
  libtorch,
  MaxPool2d,
  type Module,
  ModuleList,
  manualSeed,
  ReLU,
  RMSNorm,
  randint,
  randn,
  rmsNorm,
  Sequential,
  scaledDotProductAttention,
  scope,
  type Tensor,
  zeros,
} from "../index.ts";
import { needsPython, python, pythonTorchVersion, relativeError, runPython } from "../testing/python.ts";

const tolerance = 1e-5;

/**
 * Compares the output, the gradients of the input and of every parameter, and the buffers afterwards with those of
 * PyTorch's module in the same mode, with the same weights and buffers.
 */
async function compare(module: Module, forward: (x: Tensor) => Tensor, x: Tensor, pytorch: string): Promise<void> {
  const differentiable = x.dtype === "f32";
  const stateBefore = module.stateDict().map(([name, t]) => [`state ${name}`, t.detach().clone()]);
  if (differentiable) x.requiresGrad = true;
  const y = forward(x);
  const weight = randn(y.shape); // an upstream gradient that differs in every element
  await y.mul(weight).sum().backward();

  const expected = await runPython(
    `
${pytorch}
with torch.no_grad():
    for name, t in m.state_dict().items(): t.copy_(inputs["state " + name])
m.train(${module.training ? "True" : "False"})
x = inputs["x"]
if x.is_floating_point(): x.requires_grad_(True)
y = m(x)
(y * inputs["weight"]).sum().backward()
outputs["y"] = y
if x.is_floating_point(): outputs["gradient of x"] = x.grad
for name, p in m.named_parameters(): outputs["gradient of " + name] = p.grad
for name, t in m.named_buffers(): outputs["buffer " + name] = t
`,
    { x: x.detach(), weight, ...Object.fromEntries(stateBefore) },
  );

  const got: Record<string, Tensor> = { y };
  if (differentiable) got["gradient of x"] = x.grad!;
  for (const [name, p] of module.namedParameters()) got[`gradient of ${name}`] = p.grad!;
  for (const [name, t] of module.namedBuffers()) got[`buffer ${name}`] = t;
  expect(Object.keys(got).sort()).toEqual(Object.keys(expected).sort());
  for (const [name, tensor] of Object.entries(got))
    expect(relativeError(tensor, expected[name]!), name).toBeLessThan(tolerance);
}

/** Changes all parameters: an initial weight of ones or bias of zeros would hide an error. */
function perturb<M extends Module>(module: M): M {
  for (const parameter of module.parameters()) parameter.detach().add_(randn(parameter.shape), { alpha: 0.3 });
  return module;
}

describe.skipIf(python === undefined)(
  `nn gives PyTorch's results and gradients for the same weights${needsPython}`,
  () => {
    it.each([true, false])("Linear, bias %s", (bias) =>
      scope(async () => {
        manualSeed(1);
        const m = new Linear(7, 5, { bias });
        await compare(m, (x) => m.forward(x), randn([2, 3, 7]), `m = nn.Linear(7, 5, bias=${bias ? "True" : "False"})`);
      }),
    );

    it.each([
      [{}, ""],
      [{ paddingIdx: 3 }, ", padding_idx=3"],
      [{ paddingIdx: -2 }, ", padding_idx=-2"],
    ])("Embedding, %o", (options, more) =>
      scope(async () => {
        const m = new Embedding(11, 6, options);
        const initial = m.weight.abs().sum(1).eq(0).sum().item(); // rows of zeros
        expect(initial).toBe("paddingIdx" in options ? 1 : 0);
        await compare(m, (x) => m.forward(x), randint(0, 11, [4, 9]), `m = nn.Embedding(11, 6${more})`);
      }),
    );

    it.each([undefined, 1e-2])("RMSNorm, eps %s", (eps) =>
      scope(async () => {
        const m = perturb(new RMSNorm(33, eps === undefined ? {} : { eps }));
        const x = randn([4, 3, 33]).mul(1e-2).detach(); // small, so that eps matters
        await compare(m, (x) => m.forward(x), x, `m = nn.RMSNorm(33, eps=${eps ?? "None"})`);
      }),
    );

    it.each([true, false])("LayerNorm, bias %s", (bias) =>
      scope(async () => {
        const m = perturb(new LayerNorm(33, { bias }));
        await compare(
          m,
          (x) => m.forward(x),
          randn([4, 3, 33]),
          `m = nn.LayerNorm(33, bias=${bias ? "True" : "False"})`,
        );
      }),
    );

    it.each([true, false])("CausalSelfAttention, bias %s", (bias) =>
      scope(async () => {
        const m = perturb(new CausalSelfAttention(24, 3, { bias }));
        await compare(
          m,
          (x) => m.forward(x),
          randn([2, 10, 24]),
          `
class Attention(nn.Module):  # written out, without the fused operator
    def __init__(self, bias):
        super().__init__()
        self.qkv = nn.Linear(24, 72, bias=bias)
        self.out = nn.Linear(24, 24, bias=bias)
    def forward(self, x):
        B, T, d = x.shape
        q, k, v = [t.view(B, T, 3, 8).transpose(1, 2) for t in self.qkv(x).split(24, dim=-1)]
        scores = q @ k.transpose(-2, -1) / 8 ** 0.5
        scores = scores.masked_fill(torch.ones(T, T).triu(1).bool(), float("-inf"))
        return self.out((scores.softmax(-1) @ v).transpose(1, 2).reshape(B, T, d))
m = Attention(${bias ? "True" : "False"})
`,
        );
      }),
    );

    it.each([
      [() => new Conv2d(4, 6, 3), "nn.Conv2d(4, 6, 3)"],
      [
        () => new Conv2d(4, 6, [3, 2], { stride: [2, 1], padding: 1, dilation: [1, 2], groups: 2, bias: false }),
        "nn.Conv2d(4, 6, (3, 2), stride=(2, 1), padding=1, dilation=(1, 2), groups=2, bias=False)",
      ],
      [() => new Conv2d(4, 6, 3, { padding: "same" }), "nn.Conv2d(4, 6, 3, padding='same')"],
      [
        () => new Conv2d(4, 6, [5, 3], { padding: "same", dilation: [1, 2] }),
        "nn.Conv2d(4, 6, (5, 3), padding='same', dilation=(1, 2))",
      ],
      [() => new Conv2d(4, 6, 3, { padding: "valid", stride: 2 }), "nn.Conv2d(4, 6, 3, padding='valid', stride=2)"],
      [
        () => new Conv2d(4, 6, [2, 3], { padding: [1, 2], stride: 2, paddingMode: "reflect" }),
        "nn.Conv2d(4, 6, (2, 3), padding=(1, 2), stride=2, padding_mode='reflect')",
      ],
      [
        () => new Conv2d(4, 6, [4, 3], { padding: "same", paddingMode: "replicate" }),
        "nn.Conv2d(4, 6, (4, 3), padding='same', padding_mode='replicate')",
      ],
      [
        () => new Conv2d(4, 6, 3, { padding: [1, 2], paddingMode: "circular" }),
        "nn.Conv2d(4, 6, 3, padding=(1, 2), padding_mode='circular')",
      ],
      [() => new GroupNorm(2, 4), "nn.GroupNorm(2, 4)"],
      [() => new GroupNorm(4, 4, { eps: 1e-2, affine: false }), "nn.GroupNorm(4, 4, eps=1e-2, affine=False)"],
      [() => new MaxPool2d(2), "nn.MaxPool2d(2)"],
      [
        () => new MaxPool2d(3, { stride: 2, padding: 1, dilation: 1, ceilMode: true }),
        "nn.MaxPool2d(3, stride=2, padding=1, ceil_mode=True)",
      ],
      [() => new AvgPool2d([2, 3]), "nn.AvgPool2d((2, 3))"],
      [
        () => new AvgPool2d(3, { stride: 2, padding: 1, ceilMode: true, countIncludePad: false }),
        "nn.AvgPool2d(3, stride=2, padding=1, ceil_mode=True, count_include_pad=False)",
      ],
      [() => new AvgPool2d(3, { padding: 1, divisorOverride: 5 }), "nn.AvgPool2d(3, padding=1, divisor_override=5)"],
      [() => new AdaptiveAvgPool2d([2, 3]), "nn.AdaptiveAvgPool2d((2, 3))"],
      [() => new GELU(), "nn.GELU()"],
      [() => new GELU({ approximate: "tanh" }), "nn.GELU(approximate='tanh')"],
      [
        () => new Sequential(new Conv2d(4, 5, 1), new ReLU(), new BatchNorm2d(5), new Dropout(0)),
        "nn.Sequential(nn.Conv2d(4, 5, 1), nn.ReLU(), nn.BatchNorm2d(5), nn.Dropout(0))",
      ],
    ] as [() => Layer, string][])("images through $1", (make, pytorch) =>
      scope(async () => {
        manualSeed(2);
        const m = perturb(make());
        await compare(m, (x) => m.forward(x), randn([3, 4, 8, 7]), `m = ${pytorch}`);
      }),
    );

    it.each([
      [{}, ""],
      [{ eps: 1e-2, momentum: 0.4 }, ", eps=1e-2, momentum=0.4"],
      [{ momentum: null }, ", momentum=None"],
      [{ affine: false }, ", affine=False"],
      [{ trackRunningStats: false }, ", track_running_stats=False"],
      [{ trackRunningStats: false, momentum: null }, ", track_running_stats=False, momentum=None"],
    ])("BatchNorm2d, %o, in training and then in evaluation", (options, more) =>
      scope(async () => {
        const m = perturb(new BatchNorm2d(4, options));
        for (const training of [true, true, false]) {
          m.train(training);
          for (const p of m.parameters()) p.grad = null;
          await compare(
            m,
            (x) => m.forward(x),
            randn([3, 4, 5, 6]).mul(2).add(1).detach(),
            `m = nn.BatchNorm2d(4${more})`,
          );
        }
      }),
    );

    it.each([
      ["mean", {}, ""],
      ["sum", { reduction: "sum" }, ", reduction='sum'"],
      ["none", { reduction: "none" }, ", reduction='none'"],
      ["without the class to ignore", { ignoreIndex: 3 }, ", ignore_index=3"],
      ["with smoothed labels", { labelSmoothing: 0.1 }, ", label_smoothing=0.1"],
    ] as const)("crossEntropy, %s", (_, options, more) =>
      scope(async () => {
        const x = randn([2, 5, 9], { requiresGrad: true });
        const target = randint(0, 9, [2, 5]);
        const loss = crossEntropy(x, target, options);
        await loss.sum().backward();
        const expected = await runPython(
          `
x = inputs["x"].requires_grad_(True)
y = F.cross_entropy(x.permute(0, 2, 1), inputs["target"]${more})
y.sum().backward()
outputs["y"], outputs["gradient"] = y.reshape(-1) if y.dim() else y, x.grad
`,
          { x: x.detach(), target },
        );
        expect(relativeError(loss, expected["y"]!)).toBeLessThan(tolerance);
        expect(relativeError(x.grad!, expected["gradient"]!)).toBeLessThan(tolerance);
      }),
    );

    it("crossEntropy with a probability for each class", () =>
      scope(async () => {
        const [x, target] = [randn([2, 5, 9]), randn([2, 5, 9]).softmax(-1)];
        const expected = await runPython(
          `outputs["y"] = F.cross_entropy(inputs["x"].permute(0, 2, 1), inputs["target"].permute(0, 2, 1), label_smoothing=0.1)`,
          { x, target },
        );
        expect(relativeError(crossEntropy(x, target, { labelSmoothing: 0.1 }), expected["y"]!)).toBeLessThan(tolerance);
      }));

    it("scaledDotProductAttention with a mask and a scale; layerNorm and rmsNorm without weights", () =>
      scope(async () => {
        const [q, k, v] = [randn([2, 3, 4, 8]), randn([2, 3, 6, 8]), randn([2, 3, 6, 5])];
        const mask = randn([4, 6]).gt(-1);
        const expected = await runPython(
          `
q, k, v, mask = (inputs[n] for n in ("q", "k", "v", "mask"))
outputs["y"] = ((q @ k.mT * 0.7).masked_fill(~mask, float("-inf")).softmax(-1)) @ v
outputs["layer"] = F.layer_norm(q, (8,))
outputs["rms"] = q / (q.square().mean(-1, keepdim=True) + 1e-3).sqrt()
`,
          { q, k, v, mask },
        );
        expect(relativeError(scaledDotProductAttention(q, k, v, { mask, scale: 0.7 }), expected["y"]!)).toBeLessThan(
          tolerance,
        );
        expect(relativeError(layerNorm(q), expected["layer"]!)).toBeLessThan(tolerance);
        expect(relativeError(rmsNorm(q, null, { eps: 1e-3 }), expected["rms"]!)).toBeLessThan(tolerance);
      }));

    it.each(["bool", "f32"] as const)("scaledDotProductAttention with a mask of %s, and its gradients", (dtype) =>
      scope(async () => {
        const shapes = { q: [2, 3, 4, 8], k: [2, 3, 6, 8], v: [2, 3, 6, 8] };
        const inputs = Object.entries(shapes).map(
          ([name, shape]) => [name, randn(shape, { requiresGrad: true })] as const,
        );
        const [q, k, v] = inputs.map(([, t]) => t) as [Tensor, Tensor, Tensor];
        const mask = dtype === "bool" ? randn([2, 1, 4, 6]).gt(-1) : randn([2, 1, 4, 6]).detach();
        if (dtype === "f32") mask.requiresGrad = true;
        const y = scaledDotProductAttention(q, k, v, { mask });
        const weight = randn(y.shape);
        await y.mul(weight).sum().backward();
        const expected = await runPython(
          `
q, k, v = (inputs[n].requires_grad_(True) for n in ("q", "k", "v"))
mask = inputs["mask"]
scores = q @ k.mT / 8 ** 0.5
if mask.dtype == torch.bool: scores = scores.masked_fill(~mask, float("-inf"))
else: scores = scores + mask.requires_grad_(True)
outputs["y"] = scores.softmax(-1) @ v
(outputs["y"] * inputs["weight"]).sum().backward()
for name, t in dict(q=q, k=k, v=v, mask=mask).items():
    if t.grad is not None: outputs[name] = t.grad`,
          { ...Object.fromEntries(inputs.map(([name, t]) => [name, t.detach()])), mask: mask.detach(), weight },
        );
        const got = { y, q: q.grad!, k: k.grad!, v: v.grad!, ...(dtype === "f32" && { mask: mask.grad! }) };
        expect(Object.keys(got).sort()).toEqual(Object.keys(expected).sort());
        for (const [name, t] of Object.entries(got))
          expect(relativeError(t, expected[name]!), name).toBeLessThan(tolerance);
      }),
    );

    const { version } = libtorch();
    const needsSame =
      pythonTorchVersion === version
        ? ""
        : ` (skipped: Python has torch ${pythonTorchVersion}, and ${version} is loaded here)`;
    it.skipIf(needsSame !== "")(`has PyTorch's initial weights and dropout for the same seed${needsSame}`, () =>
      scope(async () => {
        const expected = await runPython(`
torch.manual_seed(99)
l = nn.Linear(13, 8); e = nn.Embedding(5, 3); a = nn.Linear(4, 4, bias=False); c = nn.Conv2d(4, 6, 3, groups=2)
outputs.update({"0.weight": l.weight, "0.bias": l.bias, "1.weight": e.weight, "2.weight": a.weight, "3.weight": c.weight, "3.bias": c.bias})
outputs["dropout"] = F.dropout(torch.arange(40.0), 0.25)
`);
        manualSeed(99);
        const list = new ModuleList<Module>([
          new Linear(13, 8),
          new Embedding(5, 3),
          new Linear(4, 4, { bias: false }),
          new Conv2d(4, 6, 3, { groups: 2 }),
        ]);
        const drawn = dropout(arange(40, { dtype: "f32" }), 0.25, true);
        for (const [name, parameter] of list.namedParameters())
          expect(parameter.equal(expected[name]!), name).toBe(true);
        expect(drawn.equal(expected["dropout"]!)).toBe(true);
      }),
    );
  },
);

describe("nn", () => {
  it("CausalSelfAttention does not attend to later positions, and refuses a width that heads do not divide", () =>
    scope(() => {
      const m = new CausalSelfAttention(8, 2);
      const x = randn([1, 6, 8]);
      const y = m.forward(x);
      const changed = x.clone(); // with other values at positions 4 and 5
      changed.narrow(1, 4, 2).zero_();
      const z = m.forward(changed);
      expect(z.narrow(1, 0, 4).allclose(y.narrow(1, 0, 4))).toBe(true);
      expect(z.narrow(1, 4, 2).allclose(y.narrow(1, 4, 2))).toBe(false);
      expect(() => new CausalSelfAttention(8, 3)).toThrow(/width 8 does not divide into 3 heads/);
    }));

  it("dropout does nothing in evaluation", () =>
    scope(() => {
      const x = randn([50]);
      expect(dropout(x, 0.5, false).equal(x)).toBe(true);
      expect(dropout(x, 0.5, true).equal(x)).toBe(false);
      const layer = new Dropout();
      expect([layer.forward(x).equal(x), layer.eval().forward(x).equal(x)]).toEqual([false, true]);
    }));

  it("has a role for every parameter", () => {
    const roles = (m: Module) => m.namedParameters().map(([name, p]) => `${name}: ${p.role}`);
    expect(roles(new Linear(2, 3))).toEqual(["weight: matrix", "bias: vector"]);
    expect(roles(new Linear(2, 3, { role: "head", bias: false }))).toEqual(["weight: head"]);
    expect(roles(new Embedding(2, 3))).toEqual(["weight: embedding"]);
    expect(roles(new LayerNorm(2))).toEqual(["weight: norm", "bias: norm"]);
    expect(roles(new RMSNorm(2))).toEqual(["weight: norm"]);
    expect(roles(new Conv2d(2, 3, 1))).toEqual(["weight: matrix", "bias: vector"]);
    expect(roles(new BatchNorm2d(2))).toEqual(["weight: norm", "bias: norm"]);
    expect(roles(new GroupNorm(1, 2))).toEqual(["weight: norm", "bias: norm"]);
  });

  it("refuses channels that groups do not divide, and what is no image", () =>
    scope(() => {
      expect(() => new Conv2d(4, 5, 3, { groups: 2 })).toThrow(/4 input and 5 output channels do not divide into 2/);
      expect(() => new Conv2d(4, 4, 3, { paddingMode: "mirror" as "reflect" })).toThrow(
        /paddingMode is mirror; give one of zeros, reflect, replicate, circular/,
      );
      expect(() => new Embedding(4, 2, { paddingIdx: 4 })).toThrow(/paddingIdx is 4, and there are 4 rows/);
      expect(() => new GroupNorm(3, 4)).toThrow(/4 channels do not divide into 3 groups/);
      expect(() => new BatchNorm2d(4).forward(randn([2, 4]))).toThrow(
        /needs images of shape \(B, C, H, W\), got \[2, 4\]/,
      );
      expect(() => new Dropout(1.5)).toThrow(/p is 1.5; give a probability/);
    }));

  it("Linear without inputs gives 0, as PyTorch's does", () =>
    scope(() => {
      const y = new Linear(0, 3).forward(zeros([2, 0]));
      expect(y.shape).toEqual([2, 3]);
      expect(call("aten::count_nonzero", y).item()).toBe(0);
    }));
});
