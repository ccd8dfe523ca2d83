import { describe, expect, it } from "vitest";
import {
  autocast,
  CausalSelfAttention,
  crossEntropy,
  type DType,
  Embedding,
  fromTypedArray,
  LayerNorm,
  Linear,
  Module,
  manualSeed,
  noGrad,
  RMSNorm,
  randint,
  randn,
  rmsNorm,
  scope,
  swiglu,
  type Tensor,
} from "./index.ts";
import { needsPython, python, relativeError, runPython } from "./testing/python.ts";

const cpu = { deviceType: "cpu" } as const;
const dtypes: readonly DType[] = ["f32", "bf16", "f16"];

/** A transformer's block, between an embedding and a head. */
class Net extends Module {
  readonly embedding = new Embedding(50, 64);
  readonly first = new RMSNorm(64, { eps: 1e-5 });
  readonly attention = new CausalSelfAttention(64, 4);
  readonly second = new LayerNorm(64);
  readonly gate = new Linear(64, 96);
  readonly up = new Linear(64, 96, { bias: false });
  readonly down = new Linear(96, 64, { bias: false });
  readonly head = new Linear(64, 50, { bias: false });

  /** The results of all operators, by name. */
  forward(tokens: Tensor, next: Tensor): Record<string, Tensor> {
    const embedded = this.embedding.forward(tokens);
    const normed = this.first.forward(embedded);
    const attended = this.attention.forward(normed);
    const added = embedded.add(attended);
    const normed2 = this.second.forward(added);
    const mixed = swiglu(this.gate.forward(normed2), this.up.forward(normed2));
    const logits = this.head.forward(added.add(this.down.forward(mixed)));
    return { normed, attended, added, normed2, mixed, logits, loss: crossEntropy(logits, next) };
  }
}

const pytorch = `
class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(64, 192, bias=False), nn.Linear(64, 64, bias=False)
    def forward(self, x):
        B, T, _ = x.shape
        q, k, v = self.qkv(x).view(B, T, 3, 4, 16).permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(B, T, 64))
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.first, self.attention, self.second = nn.Embedding(50, 64), nn.RMSNorm(64, eps=1e-5), Attention(), nn.LayerNorm(64)
        self.gate, self.up = nn.Linear(64, 96), nn.Linear(64, 96, bias=False)
        self.down, self.head = nn.Linear(96, 64, bias=False), nn.Linear(64, 50, bias=False)
    def forward(self, tokens, next):
        embedded = self.embedding(tokens)
        normed = self.first(embedded)
        attended = self.attention(normed)
        added = embedded + attended
        normed2 = self.second(added)
        mixed = F.silu(self.gate(normed2)) * self.up(normed2)
        logits = self.head(added + self.down(mixed))
        return dict(normed=normed, attended=attended, added=added, normed2=normed2, mixed=mixed, logits=logits,
                    loss=F.cross_entropy(logits.view(-1, 50), next.view(-1)))
m = Net()
with torch.no_grad():
    for name, p in m.named_parameters(): p.copy_(inputs["parameter " + name])
`;

describe("autocast", () => {
  it.skipIf(python === undefined)(
    `computes a transformer's block in the types of torch.autocast, with its loss and gradients${needsPython}`,
    () =>
      scope(async () => {
        manualSeed(3);
        const net = new Net();
        const [tokens, next] = [randint(0, 50, [3, 20]), randint(0, 50, [3, 20])];
        const got = autocast(cpu, () => net.forward(tokens, next));
        await got["loss"]!.backward();
        const named = net.namedParameters();
        const expected = await runPython(
          `${pytorch}
with torch.autocast("cpu", dtype=torch.bfloat16):
    results = m(inputs["tokens"], inputs["next"])
results["loss"].backward()
for name, x in results.items():
    outputs[name] = x.float()
    outputs["dtype of " + name] = [torch.float32, torch.bfloat16, torch.float16].index(x.dtype)
for name, p in m.named_parameters():
    assert p.grad.dtype == torch.float32
    outputs["gradient of " + name] = p.grad
`,
          { tokens, next, ...Object.fromEntries(named.map(([name, p]) => [`parameter ${name}`, p.detach()])) },
        );
        for (const [name, x] of Object.entries(got)) {
          expect(x.dtype, name).toBe(dtypes[expected[`dtype of ${name}`]!.item()]);
          expect(relativeError(x, expected[name]!), name).toBeLessThan(0.01);
        }
        expect(got["attended"]!.dtype).toBe("bf16");
        expect(got["added"]!.dtype).toBe("f32");
        for (const [name, { grad }] of named) {
          expect(grad!.dtype).toBe("f32");
          expect(relativeError(grad!, expected[`gradient of ${name}`]!), name).toBeLessThan(0.02);
        }
      }),
  );

  it("rounds to the type that it is given, in the sizes for which f32 takes oneDNN too", () =>
    scope(() => {
      const [x, w] = [randn([300, 128]), randn([128, 128])];
      const linear = new Linear(128, 128, { bias: false });
      noGrad(() => linear.weight.copy_(w));
      for (const dtype of ["bf16", "f16"] as const) {
        const y = autocast({ ...cpu, dtype }, () => linear.forward(x));
        expect(y.dtype).toBe(dtype);
        const error = relativeError(y, x.matmul(w.transpose(0, 1)));
        expect(error).toBeGreaterThan(1e-5);
        expect(error).toBeLessThan(0.01);
      }
    }));

  it("leaves norms of f32 as they are, and computes those of bf16 as libtorch does", () =>
    scope(() => {
      const [x, γ] = [randn([4, 32]), randn([32])];
      const norm = autocast(cpu, () => rmsNorm(x, γ, { eps: 1e-5 }));
      expect(norm.dtype).toBe("f32");
      expect(relativeError(norm, rmsNorm(x, γ, { eps: 1e-5 }))).toBe(0);
      const low = autocast(cpu, () => rmsNorm(x.to("bf16"), γ, { eps: 1e-5 }));
      expect(relativeError(low, norm)).toBeLessThan(0.01);
    }));

  it("ends with its body, also by an error, and can be off inside another", () =>
    scope(() => {
      const x = fromTypedArray(Float32Array.of(1, 2, 3, 4), [2, 2]);
      const dtype = () => x.matmul(x).dtype;
      const inside = autocast(cpu, () => {
        const off = autocast({ ...cpu, enabled: false }, dtype);
        const half = autocast({ ...cpu, dtype: "f16" }, dtype);
        return [dtype(), off, half, dtype()];
      });
      expect(inside).toEqual(["bf16", "f32", "f16", "bf16"]);
      const failing = () => {
        throw new Error("no");
      };
      expect(autocast({ deviceType: "cuda" }, dtype)).toBe("f32"); // tensors of the CPU
      expect(() => autocast(cpu, failing)).toThrow("no");
      expect(dtype()).toBe("f32");
    }));

  it("sees what a parameter has become since the body before", () =>
    scope(() => {
      const { weight } = new Linear(2, 2, { bias: false });
      const x = fromTypedArray(Float32Array.of(1, 0, 0, 1), [2, 2]);
      const values: number[] = [];
      for (const value of [1, 2]) {
        noGrad(() => weight.fill_(value));
        values.push(autocast(cpu, () => x.matmul(weight).sum().item()));
      }
      expect(values).toEqual([4, 8]);
    }));

  it("refuses an async body, and a device type that does not exist", () => {
    expect(() => autocast(cpu, (async () => 1) as never)).toThrow("autocast: the function is async");
    expect(() => autocast({ deviceType: "gpu" as never }, () => 1)).toThrow();
  });
});
