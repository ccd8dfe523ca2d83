import { describe, expect, it } from "vitest";
import {
  Arena,
  BatchNorm2d,
  Conv2d,
  Embedding,
  Linear,
  Module,
  ModuleList,
  ones,
  Parameter,
  RMSNorm,
  randn,
  Sequential,
  scope,
  snakeCase,
} from "../index.ts";

class Block extends Module {
  readonly attentionNorm = new RMSNorm(4);
  readonly fc1 = new Linear(4, 8, { bias: false });
}

class Model extends Module {
  readonly blocks = new ModuleList([new Block(), new Block()]);
  readonly tokenEmbedding = new Embedding(10, 4);
  readonly outputScale = new Parameter(ones([4]), { role: "vector" });
  readonly head = this.tokenEmbedding; // tied as a module
  readonly tied = this.tokenEmbedding.weight; // and as a parameter
  readonly notAModule = { weight: 3 };
}

describe("Module", () => {
  it("names parameters as PyTorch does: its own first, then its children's, in definition order; tied ones once", () => {
    expect(new Model().namedParameters().map(([name]) => name)).toEqual([
      "output_scale",
      "tied", // an own parameter comes before the child that holds it too, as in torch.nn.Module.named_parameters
      "blocks.0.attention_norm.weight",
      "blocks.0.fc1.weight",
      "blocks.1.attention_norm.weight",
      "blocks.1.fc1.weight",
    ]);
  });

  it("counts the elements of its parameters, those of tied ones once", () => {
    expect(new Model().parameterCount()).toBe(4 + 40 + 2 * (4 + 32));
  });

  it("train and eval set the mode of every module", () => {
    const model = new Model();
    model.eval();
    expect([model.training, [...model.blocks][1]!.fc1.training]).toEqual([false, false]);
    model.train();
    expect([model.training, model.blocks.at(-1)!.attentionNorm.training]).toEqual([true, true]);
  });

  it("moves its parameters to another dtype and keeps them leaves", () => {
    const model = new Model().to("f64");
    expect(model.parameters().every((p) => p.dtype === "f64" && p.requiresGrad && p.isLeaf)).toBe(true);
  });

  it("lists buffers and parameters in PyTorch's order; buffers are no parameters, and have no place in an arena", () => {
    const model = new Sequential(new Conv2d(1, 2, 1), new BatchNorm2d(2));
    const names = (entries: [string, unknown][]) => entries.map(([name]) => name);
    expect(names(model.namedBuffers())).toEqual(["1.running_mean", "1.running_var", "1.num_batches_tracked"]);
    expect(names(model.stateDict())).toEqual([
      "0.weight",
      "0.bias",
      "1.weight",
      "1.bias",
      "1.running_mean",
      "1.running_var",
      "1.num_batches_tracked",
    ]);
    expect(names(model.namedParameters())).toEqual(["0.weight", "0.bias", "1.weight", "1.bias"]);
    expect(new Arena(model).segments.map(({ name }) => name)).toEqual(names(model.namedParameters()));
  });

  it("moves its buffers, of which those of integers keep their dtype, and goes on counting in them", () =>
    scope(() => {
      const model = new BatchNorm2d(2).to("f64");
      expect(model.namedBuffers().map(([, { dtype }]) => dtype)).toEqual(["f64", "f64", "i64"]);
      model.forward(randn([3, 2, 1, 1], { dtype: "f64" }));
      expect(model.numBatchesTracked!.item()).toBe(1);
      expect(model.runningVar!.equal(ones([2], { dtype: "f64" }))).toBe(false);
    }));

  it("freezes its parameters and unfreezes them", () => {
    const model = new Model();
    expect(
      model
        .requiresGrad_(false)
        .parameters()
        .some((p) => p.requiresGrad),
    ).toBe(false);
    expect(
      model
        .requiresGrad_()
        .parameters()
        .every((p) => p.requiresGrad),
    ).toBe(true);
  });

  it("outlives the scope in which it was created", () => {
    const model = scope(() => new Model());
    expect(model.outputScale.sum().item()).toBe(4);
  });
});

describe("snakeCase", () => {
  it.each([
    ["weight", "weight"],
    ["attentionNorm", "attention_norm"],
    ["fc1", "fc1"],
    ["qkvProj2Out", "qkv_proj2_out"],
    ["RMSNorm", "rms_norm"],
    ["already_snake", "already_snake"],
  ])("%s → %s", (camel, snake) => expect(snakeCase(camel)).toBe(snake));
});
