import { afterAll, beforeAll, describe, expect, it } from "vitest";
import {
  arange,
  cat,
  fromTypedArray,
  manualSeed,
  rand,
  randint,
  randn,
  scope,
  stack,
  type Tensor,
  where,
} from "./index.ts";
import { needsPython, python, relativeError, runPython } from "./testing/python.ts";

manualSeed(11);
const given = {
  x: randn([3, 4]),
  y: randn([3, 4]),
  p: rand([3, 4]).add(0.1),
  row: randn([4]),
  w: randn([4, 5]),
  batch: randn([2, 3, 4]),
  other: randn([2, 4, 5]),
  bias: randn([5]),
  i: randint(0, 3, [3, 4]),
  rows: fromTypedArray(BigInt64Array.of(2n, 0n, 2n)),
  mask: randn([3, 4]).gt(0),
};
type Given = typeof given;

/** The Python expression, and ours. */
const cases: [python: string, ours: (given: Given) => Tensor | Tensor[] | boolean][] = [
  ["x + y", ({ x, y }) => x.add(y)],
  ["x + 3 * y", ({ x, y }) => x.add(y, { alpha: 3 })],
  ["x + 2", ({ x }) => x.add(2)],
  ["i + 2", ({ i }) => i.add(2)],
  ["i + 0.5", ({ i }) => i.add(0.5)],
  ["x - 0.5 * y", ({ x, y }) => x.sub(y, { alpha: 0.5 })],
  ["x - 7", ({ x }) => x.sub(7)],
  ["2 - x", ({ x }) => x.rsub(2)],
  ["x * row", ({ x, row }) => x.mul(row)],
  ["x * -1.5", ({ x }) => x.mul(-1.5)],
  ["x / p", ({ x, p }) => x.div(p)],
  ["i / 2", ({ i }) => i.div(2)],
  ["torch.div(x, p, rounding_mode='floor')", ({ x, p }) => x.div(p, { rounding: "floor" })],
  ["torch.div(i, 2, rounding_mode='trunc')", ({ i }) => i.div(2, { rounding: "trunc" })],
  ["p ** x", ({ p, x }) => p.pow(x)],
  ["p ** 1.5", ({ p }) => p.pow(1.5)],
  ["torch.maximum(x, y)", ({ x, y }) => x.maximum(y)],
  ["torch.minimum(x, y)", ({ x, y }) => x.minimum(y)],
  ["torch.addcmul(x, y, p, value=2)", ({ x, y, p }) => x.addcmul(y, p, { value: 2 })],
  ["torch.addcdiv(x, y, p, value=2)", ({ x, y, p }) => x.addcdiv(y, p, { value: 2 })],
  ["torch.lerp(x, y, 0.3)", ({ x, y }) => x.lerp(y, 0.3)],
  ["x.clamp(-0.5, 0.5)", ({ x }) => x.clamp({ min: -0.5, max: 0.5 })],
  ["x.clamp(max=0.2)", ({ x }) => x.clamp({ max: 0.2 })],
  ["-x", ({ x }) => x.neg()],
  ["x.abs()", ({ x }) => x.abs()],
  ["x.sign()", ({ x }) => x.sign()],
  ["x.exp()", ({ x }) => x.exp()],
  ["p.log()", ({ p }) => p.log()],
  ["p.sqrt()", ({ p }) => p.sqrt()],
  ["p.rsqrt()", ({ p }) => p.rsqrt()],
  ["p.reciprocal()", ({ p }) => p.reciprocal()],
  ["x.square()", ({ x }) => x.square()],
  ["x.sin()", ({ x }) => x.sin()],
  ["x.cos()", ({ x }) => x.cos()],
  ["x.tanh()", ({ x }) => x.tanh()],
  ["x.sigmoid()", ({ x }) => x.sigmoid()],
  ["x.relu()", ({ x }) => x.relu()],
  ["F.silu(x)", ({ x }) => x.silu()],
  ["F.gelu(x)", ({ x }) => x.gelu()],
  ["F.gelu(x, approximate='tanh')", ({ x }) => x.gelu({ approximate: "tanh" })],
  ["(3 * x).floor()", ({ x }) => x.mul(3).floor()],
  ["(3 * x).ceil()", ({ x }) => x.mul(3).ceil()],
  ["(3 * x).round()", ({ x }) => x.mul(3).round()],
  ["(x / 0).isnan()", ({ x }) => x.div(0).isnan()],
  ["x.log().isfinite()", ({ x }) => x.log().isfinite()],
  ["x == y", ({ x, y }) => x.eq(y)],
  ["i != 1", ({ i }) => i.ne(1)],
  ["x < y", ({ x, y }) => x.lt(y)],
  ["x <= 0.1", ({ x }) => x.le(0.1)],
  ["x > y", ({ x, y }) => x.gt(y)],
  ["x >= 0", ({ x }) => x.ge(0)],
  ["torch.logical_and(mask, x > 1)", ({ mask, x }) => mask.logicalAnd(x.gt(1))],
  ["torch.logical_or(mask, x > 1)", ({ mask, x }) => mask.logicalOr(x.gt(1))],
  ["~mask", ({ mask }) => mask.logicalNot()],
  ["torch.equal(x, x.clone())", ({ x }) => x.equal(x.clone())],
  ["torch.equal(x, y)", ({ x, y }) => x.equal(y)],
  ["torch.allclose(x, x + 1e-7)", ({ x }) => x.allclose(x.add(1e-7))],
  ["torch.allclose(x, x + 1e-3)", ({ x }) => x.allclose(x.add(1e-3))],
  ["torch.where(mask, x, y)", ({ mask, x, y }) => where(mask, x, y)],
  ["x.sum()", ({ x }) => x.sum()],
  ["batch.sum((0, 2))", ({ batch }) => batch.sum([0, 2])],
  ["x.sum(1, keepdim=True)", ({ x }) => x.sum(1, { keepDim: true })],
  ["x.mean()", ({ x }) => x.mean()],
  ["x.mean(-1)", ({ x }) => x.mean(-1)],
  ["x.var()", ({ x }) => x.var()],
  ["x.var(0, correction=0)", ({ x }) => x.var(0, { correction: 0 })],
  ["x.std(1)", ({ x }) => x.std(1)],
  ["torch.linalg.vector_norm(x)", ({ x }) => x.norm()],
  ["torch.linalg.vector_norm(x, 1, 0)", ({ x }) => x.norm(0, { ord: 1 })],
  ["torch.linalg.vector_norm(x, float('inf'))", ({ x }) => x.norm(undefined, { ord: Number.POSITIVE_INFINITY })],
  ["x.max()", ({ x }) => x.max()],
  ["list(x.max(1))", ({ x }) => Object.values(x.max(1))],
  ["x.min()", ({ x }) => x.min()],
  ["list(x.min(0, keepdim=True))", ({ x }) => Object.values(x.min(0, { keepDim: true }))],
  ["x.amax((0, 1))", ({ x }) => x.amax([0, 1])],
  ["x.amin()", ({ x }) => x.amin()],
  ["x.argmax()", ({ x }) => x.argmax()],
  ["x.argmax(1, keepdim=True)", ({ x }) => x.argmax(1, { keepDim: true })],
  ["x.argmin(0)", ({ x }) => x.argmin(0)],
  ["mask.all()", ({ mask }) => mask.all()],
  ["mask.any()", ({ mask }) => mask.any()],
  ["x.cumsum(1)", ({ x }) => x.cumsum(1)],
  ["x.logsumexp(1)", ({ x }) => x.logsumexp(1)],
  ["x.softmax(-1)", ({ x }) => x.softmax(-1)],
  ["x.log_softmax(0)", ({ x }) => x.logSoftmax(0)],
  ["batch @ w", ({ batch, w }) => batch.matmul(w)],
  ["x.mm(w)", ({ x, w }) => x.mm(w)],
  ["batch.bmm(other)", ({ batch, other }) => batch.bmm(other)],
  ["torch.addmm(bias, x, w, beta=0.5, alpha=2)", ({ bias, x, w }) => bias.addmm(x, w, { beta: 0.5, alpha: 2 })],
  ["row.dot(row)", ({ row }) => row.dot(row)],
  ["torch.outer(row, bias)", ({ row, bias }) => row.outer(bias)],
  ["x.view(2, 6)", ({ x }) => x.view(2, 6)],
  ["x.t().reshape(-1)", ({ x }) => x.T.reshape(-1)],
  ["batch.flatten(1)", ({ batch }) => batch.flatten(1)],
  ["batch.transpose(0, 2)", ({ batch }) => batch.transpose(0, 2)],
  ["batch.mT", ({ batch }) => batch.mT],
  ["batch.permute(2, 0, 1)", ({ batch }) => batch.permute(2, 0, 1)],
  ["x.unsqueeze(1).squeeze()", ({ x }) => x.unsqueeze(1).squeeze()],
  ["row.unsqueeze(0).squeeze(0)", ({ row }) => row.unsqueeze(0).squeeze(0)],
  ["row.expand(3, -1)", ({ row }) => row.expand(3, -1)],
  ["row.repeat(2, 3)", ({ row }) => row.repeat(2, 3)],
  ["x.narrow(1, 1, 2)", ({ x }) => x.narrow(1, 1, 2)],
  ["x.select(0, -1)", ({ x }) => x.select(0, -1)],
  ["x[:, 1:4:2]", ({ x }) => x.slice(1, 1, 4, 2)],
  ["x[1:]", ({ x }) => x.slice(0, 1)],
  ["list(x.split(3, 1))", ({ x }) => x.split(3, 1)],
  ["list(x.split([1, 3], 1))", ({ x }) => x.split([1, 3], 1)],
  ["list(x.chunk(2))", ({ x }) => x.chunk(2)],
  ["list(x.unbind(1))", ({ x }) => x.unbind(1)],
  ["batch.flip(0, 2)", ({ batch }) => batch.flip(0, 2)],
  ["x.tril(-1)", ({ x }) => x.tril(-1)],
  ["x.triu(1)", ({ x }) => x.triu(1)],
  ["x.diagonal(1)", ({ x }) => x.diagonal(1)],
  ["torch.cat([x, y], 1)", ({ x, y }) => cat([x, y], 1)],
  ["torch.stack([x, y], 1)", ({ x, y }) => stack([x, y], 1)],
  ["x.index_select(0, rows)", ({ x, rows }) => x.indexSelect(0, rows)],
  ["x.gather(0, i)", ({ x, i }) => x.gather(0, i)],
  ["x[:, rows]", ({ x, rows }) => x.index([null, rows])],
  ["x[mask]", ({ x, mask }) => x.index([mask])],
  ["x.masked_fill(mask, -9)", ({ x, mask }) => x.maskedFill(mask, -9)],
  ["x.masked_select(mask)", ({ x, mask }) => x.maskedSelect(mask)],
  ["list(x.topk(2))", ({ x }) => Object.values(x.topk(2))],
  ["list(x.topk(2, 0, largest=False))", ({ x }) => Object.values(x.topk(2, 0, { largest: false }))],
  ["list(x.sort(descending=True))", ({ x }) => Object.values(x.sort(-1, { descending: true }))],
  ["x.to(torch.float64)", ({ x }) => x.to("f64")],
  ["(3 * x).to(torch.int32)", ({ x }) => x.mul(3).to({ dtype: "i32" })],
  ["torch.arange(2, 9, 3)", () => arange(2, 9, 3)],
  ["torch.arange(0, 1, 0.25)", () => arange(0, 1, 0.25)],
  ["x.clone().add_(y, alpha=2)", ({ x, y }) => x.clone().add_(y, { alpha: 2 })],
  ["x.clone().add_(1)", ({ x }) => x.clone().add_(1)],
  ["x.clone().sub_(y)", ({ x, y }) => x.clone().sub_(y)],
  ["x.clone().sub_(1.5)", ({ x }) => x.clone().sub_(1.5)],
  ["x.clone().mul_(y)", ({ x, y }) => x.clone().mul_(y)],
  ["x.clone().mul_(2)", ({ x }) => x.clone().mul_(2)],
  ["x.clone().div_(p)", ({ x, p }) => x.clone().div_(p)],
  ["x.clone().div_(4)", ({ x }) => x.clone().div_(4)],
  [
    "torch.ones(3, 5).addmm_(x, w, beta=-1, alpha=0.5)",
    ({ x, w }) => x.mm(w).fill_(1).addmm_(x, w, { beta: -1, alpha: 0.5 }),
  ],
  ["x.clone().addcmul_(y, p, value=3)", ({ x, y, p }) => x.clone().addcmul_(y, p, { value: 3 })],
  ["x.clone().addcdiv_(y, p, value=3)", ({ x, y, p }) => x.clone().addcdiv_(y, p, { value: 3 })],
  ["x.clone().lerp_(y, 0.9)", ({ x, y }) => x.clone().lerp_(y, 0.9)],
  ["x.clone().copy_(row)", ({ x, row }) => x.clone().copy_(row)],
  ["x.clone().zero_()", ({ x }) => x.clone().zero_()],
  ["x.clone().neg_()", ({ x }) => x.clone().neg_()],
  ["p.clone().sqrt_()", ({ p }) => p.clone().sqrt_()],
  ["x.clone().relu_()", ({ x }) => x.clone().relu_()],
  ["x.clone().clamp_(min=0)", ({ x }) => x.clone().clamp_({ min: 0 })],
  ["x.clone().masked_fill_(mask, 2)", ({ x, mask }) => x.clone().maskedFill_(mask, 2)],
];

describe.skipIf(python === undefined)(`every operator gives the result of PyTorch's${needsPython}`, () => {
  let expected: Record<string, Tensor>;

  beforeAll(async () => {
    const lines = cases.map(([expression], i) => `put(${i}, ${expression})`);
    const script = `
locals().update(inputs)
def put(i, value):
    for k, t in enumerate(value if isinstance(value, list) else [value]):
        outputs[f"{i}-{k}"] = torch.as_tensor(t)
${lines.join("\n")}
`;
    expected = await runPython(script, given);
  });
  afterAll(() => {
    for (const tensor of [...Object.values(given), ...Object.values(expected)]) tensor.dispose();
  });

  it.each(cases)("%s", (_, ours) => {
    const i = cases.findIndex((row) => row[1] === ours);
    scope(() => {
      const result = ours(given);
      if (typeof result === "boolean") {
        expect(result).toBe(expected[`${i}-0`]!.item() === 1);
        return;
      }
      const tensors = Array.isArray(result) ? result : [result];
      expect(tensors).toHaveLength(Object.keys(expected).filter((name) => name.startsWith(`${i}-`)).length);
      tensors.forEach((tensor, k) => {
        const wanted = expected[`${i}-${k}`]!;
        expect([tensor.dtype, tensor.shape]).toEqual([wanted.dtype, wanted.shape]);
        if (tensor.dtype === "f32" || tensor.dtype === "f64") expect(relativeError(tensor, wanted)).toBeLessThan(1e-6);
        else expect(tensor.equal(wanted)).toBe(true);
      });
    });
  });
});
