import { describe, expect, it } from "vitest";
import {
  autocast,
  BatchNorm2d,
  Conv2d,
  crossEntropy,
  Embedding,
  Linear,
  MaxPool2d,
  ones,
  randint,
  scope,
  tensor,
  zeros,
} from "./index.ts";
import { operators, optionsOf } from "./operators.ts";

/** The names that a call reads of its options. */
function namesRead(call: (...args: unknown[]) => unknown, argument: number): string[] {
  const read: string[] = [];
  const options = new Proxy({}, { get: (_, name) => void read.push(String(name)) });
  const x = ones([1]);
  try {
    call(...Array.from({ length: argument }, () => x), options);
  } finally {
    x.dispose();
  }
  return read.sort();
}

it("knows the options of every method", () => {
  for (const [name, call] of Object.entries(operators)) {
    const [argument, ...names] = optionsOf[name as keyof typeof optionsOf] ?? [];
    const takes = argument !== undefined || / = \{\}\) ?=>/.test(String(call));
    if (takes) expect([name, ...namesRead(call as never, argument ?? -1)]).toEqual([name, ...names.sort()]);
  }
});

describe("what has no effect is refused", () => {
  const x = ones([2, 3]);
  const target = tensor([0, 1], { dtype: "i64" });
  it.each<[string, () => unknown, string]>([
    [
      "a misspelt option of a method",
      () => x.sum(0, { keepdim: true } as never),
      "sum: there is no option keepdim; did you mean keepDim?",
    ],
    [
      "PyTorch's positional option",
      () => x.sum(0, true as never),
      "sum: options are an object, as in { keepDim: … }, and this is true",
    ],
    ["limits as numbers", () => x.clamp(0 as never), "clamp: options are an object, as in { min: … }, and this is 0"],
    [
      "a dtype in place of options",
      () => zeros([2], "i64" as never),
      'a new tensor: options are an object, as in { dtype: … }, and this is "i64"',
    ],
    [
      "the same where the dtype has a default",
      () => randint(0, 2, [2], "i32" as never),
      "a new tensor: options are an object",
    ],
    [
      "PyTorch's name",
      () => tensor([1], { requires_grad: true } as never),
      "a new tensor: there is no option requires_grad; did you mean requiresGrad?",
    ],
    [
      "a layer's bias by position",
      () => new Linear(2, 2, false as never),
      "Linear: options are an object, as in { bias: … }, and this is false",
    ],
    [
      "a layer's misspelt option",
      () => new Conv2d(1, 1, 3, { paddings: 1 } as never),
      "Conv2d: there is no option paddings (known: stride, padding",
    ],
    ["one of pooling", () => new MaxPool2d(2, { strides: 1 } as never), "MaxPool2d: there is no option strides"],
    ["one of an embedding", () => new Embedding(2, 2, { padding_idx: 0 } as never), "did you mean paddingIdx?"],
    [
      "one of a normalisation",
      () => new BatchNorm2d(2, { epsilon: 1 } as never),
      "BatchNorm2d: there is no option epsilon",
    ],
    [
      "one of a loss",
      () => crossEntropy(x, target, { label_smoothing: 0.1 } as never),
      "crossEntropy: there is no option label_smoothing; did you mean labelSmoothing?",
    ],
    [
      "classes in another dtype than i64",
      () => crossEntropy(x, tensor([0, 1])),
      "crossEntropy: target is f32[2]; classes are numbers in i64",
    ],
    [
      "an unknown reduction",
      () => crossEntropy(x, target, { reduction: "avg" } as never),
      "crossEntropy: reduction is avg, and must be mean, sum or none",
    ],
    ["one of autocast", () => autocast({ device: "cpu" } as never, () => 1), "autocast: there is no option device"],
    [
      "a gradient by position",
      () => x.sum().backward(ones([]) as never),
      "backward: give the gradient as { gradient }",
    ],
    [
      "an option of backward",
      () => x.sum().backward({ retain_graph: true } as never),
      "backward: there is no option retain_graph; did you mean retainGraph?",
    ],
    ["a conversion to nothing", () => x.to(undefined as never), "to: give a dtype"],
    [
      "a view that has no elements",
      () => tensor(new DataView(new ArrayBuffer(4)) as never),
      "tensor: expected numbers",
    ],
  ])("%s", (_, call, message) => {
    scope(() => expect(call).toThrow(message));
  });
});
