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
  zeros,
} from "../index.ts";
import { snakeCase } from "./module.ts";

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

  it.each([undefined, {}, { role: "bias" }])(
    "refuses a parameter without a role that optimizers know: %j",
    (options) => {
      expect(() => new Parameter(ones([4]), options as never)).toThrow(
        /^Parameter: role is .+, and must be one of matrix/,
      );
    },
  );

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

  it("loads a state by its names, in place, also of another dtype", () =>
    scope(() => {
      const create = () => new Sequential(new Linear(3, 2), new BatchNorm2d(2));
      const [model, other] = [create(), create()];
      model.stateDict()[5]![1].fill_(7);
      expect(other.loadStateDict(model.to("f64").stateDict())).toEqual({ missingKeys: [], unexpectedKeys: [] });
      for (const [i, [name, tensor]] of other.stateDict().entries())
        expect(tensor.equal(model.stateDict()[i]![1].to(tensor.dtype)), name).toBe(true);
      expect(other.parameters().every((p) => p.requiresGrad && p.isLeaf && p.dtype === "f32")).toBe(true);
    }));

  it("names what is missing, unexpected or of another shape in a state, the first ten, and then loads nothing", () =>
    scope(() => {
      const model = new Model();
      const before = model.outputScale.clone();
      const state = [
        ["output_scale", zeros([4])],
        ["tied", zeros([3, 4])],
        ["more", zeros([1])],
      ] as const;
      expect(() => model.loadStateDict(state)).toThrow(
        "loadStateDict: the state does not fit Model: blocks.0.attention_norm.weight is missing; blocks.0.fc1.weight is missing; blocks.1.attention_norm.weight is missing; blocks.1.fc1.weight is missing; more is unexpected; tied is [3, 4] there and [10, 4] here",
      );
      expect(() => model.loadStateDict(state, { strict: false })).toThrow(/Model: tied is \[3, 4\] there/);
      expect(model.outputScale.equal(before)).toBe(true);
      const many = Array.from({ length: 12 }, (_, i) => [`more.${i}`, zeros([1])] as const);
      expect(() => model.loadStateDict(many)).toThrow(/more\.3 is unexpected; and 8 more$/);
      const all = Array.from({ length: 300_000 }, (_, i) => [`more.${i}`, state[2][1]] as const);
      expect(() => model.loadStateDict(all)).toThrow(/ and 2999\d\d more$|and 300\d{3} more$/);
      expect(model.loadStateDict([state[0], state[2]], { strict: false })).toMatchObject({
        missingKeys: ["tied", "blocks.0.attention_norm.weight", ...Array(3).fill(expect.any(String))],
        unexpectedKeys: ["more"],
      });
      expect(model.outputScale.equal(state[0][1])).toBe(true);
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

describe("modules and parameters that would be left out", () => {
  class InList extends Module {
    readonly layers: unknown;
    constructor(layers: unknown) {
      super();
      this.layers = layers;
    }
  }

  it.each([
    ["an array of modules", () => [new Linear(1, 1)], "layers is a list with a Linear"],
    ["a map of modules", () => new Map([["a", new Linear(1, 1)]]), "layers is a list with a Linear"],
    ["an object of modules", () => ({ a: new Linear(1, 1) }), "layers is a list with a Linear"],
    [
      "an array of parameters",
      () => [new Parameter(ones([1]), { role: "vector" })],
      "layers is a list with a Parameter",
    ],
  ])("are named: %s", (_, make, message) => {
    const model = new Sequential(new InList(make()) as never);
    const all = `InList: 0.${message}, which would not be trained or saved; make it a ModuleList, or a field of its own`;
    expect(() => model.namedParameters()).toThrow(all);
    expect(() => new Arena(model)).toThrow(all);
    expect(() => model.stateDict()).toThrow(all);
  });

  it("are none where a list has what fields have too, or a list of modules is one", () => {
    const layer = new Linear(1, 1);
    class Both extends InList {
      readonly first = layer;
      readonly list = new ModuleList([layer]);
    }
    expect(new Both([layer, layer.weight]).namedParameters().map(([name]) => name)).toEqual([
      "first.weight",
      "first.bias",
    ]);
  });

  it("are refused in lists of modules: an array in place of several, and what is no module", () => {
    expect(() => new Sequential([new Linear(1, 1)] as never)).toThrow(
      "Sequential: element 0 is an array; give modules, as in new Sequential(a, b) and new ModuleList([a, b])",
    );
    expect(() => new ModuleList([new Linear(1, 1), "gelu" as never])).toThrow("ModuleList: element 1 is no Module");
  });

  it("are not asked for from what is no module and no state", () => {
    expect(() => new Arena([ones([1])] as never)).toThrow("Arena: expected a Module");
    expect(() => new Linear(1, 1).loadStateDict({ weight: ones([1, 1]) } as never)).toThrow(
      "loadStateDict: a state is pairs of a name and a tensor",
    );
  });
});
