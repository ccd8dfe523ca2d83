import { type Group, loopback } from "@terse/collectives";
import { algorithms, SavedStateError, type TrainingOptimizer } from "@terse/optimizers";
import { OptionsError } from "@terse/options";
import { Arena, fromTypedArray, noGrad, type Segment, type TypedArray } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { buildModel, buildOptimizer } from "./build.ts";
import { groupsOf, methodsIn } from "./parameter-groups.ts";
import { readRecipe } from "./recipe.ts";
import { resumedRecipe } from "./resumed-recipe.ts";

const recipeOf = (...overrides: string[]) =>
  readRecipe("gpt-small-lion", [
    "optimizer.name=lion-cub",
    "model.preset=nano",
    "model.width=32",
    "model.layers=1",
    "optimizer.clip=0",
    "optimizer.lr=3e-4",
    ...overrides,
  ]);

const segments: Segment[] = [
  ["embedding.weight", "embedding"],
  ["blocks.0.norm.weight", "norm"],
  ["blocks.0.mlp.weight", "matrix"],
  ["blocks.0.mlp.bias", "vector"],
  ["blocks.10.mlp.weight", "matrix"],
  ["head.weight", "head"],
].map(([name, role], i) => ({ name: name!, role: role as Segment["role"], shape: [64], offset: 64 * i, length: 64 }));

/** "lion × 2" by parameter: the optimizer that takes it, and its factor of the learning rate. */
function takers(...overrides: string[]): Record<string, string> {
  const { groups } = groupsOf(methodsIn(recipeOf(...overrides))[0]!, segments);
  return Object.fromEntries(
    segments.map((segment) => {
      const { algorithm, lrFactor = 1 } = groups.find(({ match }) => match(segment))!;
      return [segment.name, lrFactor === 1 ? algorithm.name : `${algorithm.name} × ${lrFactor}`];
    }),
  );
}

describe("optimizer.groups", () => {
  it("take the parameters with their roles, their names, or both; the first group that matches wins", () => {
    const groups = [
      "{ roles: [embedding, head], name: adamw, lr: 6e-4 }",
      '{ parameters: "blocks.1*.weight", name: lion }',
      '{ parameters: "*.mlp.*", roles: [vector], name: sgd, lr: 3e-4 }',
      '{ parameters: "*weight", roles: [norm, head], name: signsgd }',
    ];
    expect(takers(`optimizer.groups=[${groups.join(", ")}]`)).toEqual({
      "embedding.weight": "adamw × 2",
      "blocks.0.norm.weight": "signsgd",
      "blocks.0.mlp.weight": "lion-cub",
      "blocks.0.mlp.bias": "sgd",
      "blocks.10.mlp.weight": "lion",
      "head.weight": "adamw × 2",
    });
  });

  it("take dots and brackets in names as they are", () => {
    expect(() => takers('optimizer.groups=[{ parameters: "blocks.0.norm-weight", name: lion }]')).toThrow(
      /no parameter/,
    );
    expect(() => takers('optimizer.groups=[{ parameters: "blocks_0.norm.weight", name: lion }]')).toThrow(
      /no parameter/,
    );
    expect(() => takers('optimizer.groups=[{ parameters: "[a-z]*", name: lion }]')).toThrow(/no parameter/);
  });

  it("are changed from the command line by their number", () => {
    const one = "optimizer.groups=[{ roles: [norm], name: adamw }]";
    expect(recipeOf(one, "optimizer.groups.0.lr=1e-3", "optimizer.groups.0.eps=1e-6").optimizer.groups).toMatchObject([
      { roles: ["norm"], name: "adamw", lr: 1e-3, eps: 1e-6, beta1: 0.9 },
    ]);
    expect(recipeOf("optimizer.groups.0.name=sgd", "optimizer.groups.0.roles=[head]").optimizer.groups).toHaveLength(1);
  });

  it.each([
    ["{ roles: [norms], name: lion }", /optimizer\.groups\.0\.roles\.0: .*did you mean norm\?/],
    ["{ role: [norm], name: lion }", /optimizer\.groups\.0\.role: unknown option; did you mean roles\?/],
    ["{ roles: [norm], name: loin }", /optimizer\.groups\.0\.name: .*did you mean lion\?/],
    ["{ roles: [norm], name: lion, eps: 1 }", /optimizer\.groups\.0\.eps: unknown option/],
    ["{ roles: [norm], name: lion, lr: -1 }", /optimizer\.groups\.0\.lr: expected a number > 0/],
    ["{ roles: [norm] }", /optimizer\.groups\.0\.name: missing; expected one of/],
    [
      "{ name: lion }",
      /^optimizer\.groups\.0: names no parameters; give roles, such as \[embedding, head\], or parameters/,
    ],
    [
      "{ roles: [norm], name: one-bit-adam, warmup: 500 }",
      /^optimizer\.groups\.0\.warmup: 500 steps of warm-up, and the run has 500/,
    ],
    [
      "{ parameters: 'block.*', name: lion }",
      /^optimizer\.groups\.0: matches no parameter; there is embedding\.weight \(embedding\), blocks\.\*\.norm\.weight \(norm\), blocks\.\*\.mlp\.weight \(matrix\), blocks\.\*\.mlp\.bias \(vector\), head\.weight \(head\)$/,
    ],
    [
      "{ roles: [norm], name: lion }, { parameters: '*norm*', name: sgd }",
      /^optimizer\.groups\.1: matches no parameter that no group before it takes; there is /,
    ],
    [
      "{ parameters: '*', name: lion }",
      /^optimizer\.groups: take every parameter, and leave none to optimizer\.name: lion-cub; drop a group$/,
    ],
  ])("refuse %s in one line", (group, message) => {
    expect(() => takers(`optimizer.groups=[${group}]`)).toThrow(OptionsError);
    expect(() => takers(`optimizer.groups=[${group}]`)).toThrow(message);
  });

  it.each(["muon", "dion"])(
    "are what %s needs for parameters that are no matrices, and the error shows how to write them",
    (name) => {
      const shaped = segments.map((segment) => ({
        ...segment,
        shape: ["norm", "vector"].includes(segment.role) ? [64] : [8, 8],
      }));
      const of = (...overrides: string[]) =>
        groupsOf(methodsIn(recipeOf(`optimizer.name=${name}`, ...overrides))[0]!, shaped);
      let message = "";
      try {
        of();
      } catch (error) {
        message = (error as Error).message;
      }
      expect(message).toMatch(
        `optimizer.name: ${name} works on matrices, and blocks.0.norm.weight and 1 more are none; give such parameters another optimizer: optimizer.groups: [`,
      );
      const [, remedy] = /optimizer\.groups: (\[.*\])$/.exec(message)!;
      const { groups } = of(`optimizer.groups=${remedy}`);
      expect(groups.map(({ algorithm }) => algorithm.name)).toEqual(["adamw", name]);
    },
  );

  it("name the group whose parameters are no matrices", () => {
    expect(() => takers("optimizer.groups=[{ roles: [norm], name: muon }]")).toThrow(
      /^optimizer\.groups\.0\.name: muon works on matrices, and blocks\.0\.norm\.weight is none; /,
    );
  });

  it("refuse an optimizer that needs the whole model, and say what lets it share the model", () => {
    const whole = ["optimizer.name=one-bit-adam", "optimizer.scale=fused"];
    const norms = "optimizer.groups=[{ roles: [norm], name: lion }]";
    expect(() => takers(...whole, norms)).toThrow(
      /^optimizer\.groups: one-bit-adam works on the whole model as one vector here, .*; take optimizer\.scale: per-layer, or drop/,
    );
    expect(() => takers(...whole, "optimizer.noDecay=[norm]", "optimizer.weightDecay=0.1")).toThrow(
      /^optimizer\.noDecay: /,
    );
    expect(() => takers("optimizer.groups=[{ roles: [norm], name: one-bit-lamb, scale: fused }]")).toThrow(
      /; take optimizer\.groups\.0\.scale: per-layer/,
    );
    expect(takers(...whole.slice(0, 1), norms)["head.weight"]).toBe("one-bit-adam");
  });
});

describe("what an optimizer says of its options", () => {
  const vectors = "{ roles: [embedding, head, norm, vector], name: adamw }";

  it.each([
    [["name=sgd", "nesterov=true"], "optimizer.nesterov: needs a momentum"],
    [["name=lamb", "minRatio=9", "maxRatio=1"], "optimizer.minRatio: 9 is more"],
    [["name=demo", "k=9999"], "optimizer.k: a chunk of"],
    [["name=lion-cub", "bits=2", "tie=plus"], "optimizer.tie: with bits: 2"],
    [["name=lion-cub", "sumBits=2"], "optimizer.sumBits: 2 bits hold a sum"],
    [["name=lion-cub", "momentumSync.segments={ match: hedd }"], "optimizer.momentumSync.segments: "],
    [
      [
        "name=lion-cub",
        "momentumSync.segments=all",
        "groups=[{ roles: [head], name: lion-cub, momentumSync: { segments: { match: hedd } } }]",
      ],
      "optimizer.groups.0.momentumSync.segments: ",
    ],
    [["name=dion", "rank=999", `groups=[${vectors}]`], "optimizer.rank: 999 is more than the rank of"],
    [["groups=[{ roles: [head], name: sgd, nesterov: true }]"], "optimizer.groups.0.nesterov: "],
    [["groups=[{ roles: [head], name: lion-cub, sumBits: 2 }]"], "optimizer.groups.0.sumBits: "],
    [["name=dion", `groups=[${vectors}, { parameters: "*mlp*", name: dion, rank: 999 }]`], "optimizer.groups.1.rank: "],
    [
      ["groups=[{ roles: [head], name: lion-cub, momentumSync: { segments: { match: hedd } } }]"],
      "optimizer.groups.0.momentumSync.segments: ",
    ],
  ])("names the recipe's key, for %j", async (given, message) => {
    const overrides = given.map((option) => `optimizer.${option}`);
    const building = onRanks(recipeOf(...overrides), async () => {});
    await expect(building).rejects.toThrow(OptionsError);
    await expect(building).rejects.toThrow(new RegExp(`^${message.replaceAll(".", "\\.")}`));
  });

  it("names the recipe's key of what does not fit a save", () => {
    const { groups } = groupsOf(methodsIn(recipeOf("optimizer.name=one-bit-adam", "optimizer.warmup=5"))[0]!, segments);
    const adopt = () => groups[0]!.algorithm.adopt!({ compressesFrom: 10, varianceNorm: 1, factors: [] }, 20);
    expect(adopt).toThrow(SavedStateError);
    expect(adopt).toThrow(/^optimizer\.warmup: 5, and the warm-up of this save has ended after 10 steps/);
  });

  it.each([
    ["optimizer.scale: per-layer", ["optimizer.name=one-bit-adam", "optimizer.scale=fused"]],
    [
      "exchange.gradient.threshold: layer",
      ["optimizer.name=sgd", "exchange.gradient.name=graddrop", "exchange.gradient.threshold=model"],
    ],
  ])("names, where messages cannot leave while backward runs, %s", async (remedy, given) => {
    const recipe = recipeOf(...given, "overlap=on");
    await expect(onRanks(recipe, async () => {})).rejects.toThrow(`set overlap to off, or take ${remedy}`);
    const [key, value] = remedy.split(": ") as [string, string];
    await onRanks(recipeOf(...given, "overlap=on", `${key}=${value}`), async () => {});
  });
});

describe("optimizer.noDecay", () => {
  it("leaves parameters with these roles undecayed, in groups too, and changes nothing else", async () => {
    const given = ["optimizer.weightDecay=0.5", "optimizer.groups=[{ roles: [head], name: lion, weightDecay: 0.25 }]"];
    // Without a gradient Lion holds its parameters, and distributed-lion does so with exact zeros.
    const name = ["optimizer.name=distributed-lion", "optimizer.zero=hold"];
    const run = async (noDecay: string) => {
      const [ratios] = await onRanks(
        recipeOf(...name, ...given, `optimizer.noDecay=${noDecay}`),
        async (arena, optimizer) => {
          noGrad(() => arena.parameters.fill_(1));
          await optimizer.step({ lr: 0.5 });
          const θ = (await arena.parameters.toTypedArray()) as Float32Array;
          return new Map(arena.segments.map(({ role, offset }) => [role, θ[offset]!]));
        },
      );
      return Object.fromEntries(ratios!);
    };
    const all = { embedding: 0.75, norm: 0.75, matrix: 0.75, head: 0.875 };
    expect(await run("[]")).toEqual(all);
    expect(await run("[norm, vector]")).toEqual({ ...all, norm: 1 });
    expect(await run("[head, embedding]")).toEqual({ ...all, head: 1, embedding: 1 });
  });

  it.each(Object.keys(algorithms))("of %s is the same optimizer with a weight decay of 0", async (name) => {
    const create = algorithms[name as keyof typeof algorithms];
    const given = [`optimizer.name=${name}`];
    if ("warmup" in create.options.entries) given.push("optimizer.warmup=1");
    if (create().takes === "matrices") given.push("optimizer.groups=[{ roles: [norm], name: lion }]");
    const run = async (...more: string[]) => {
      const [parameters] = await onRanks(recipeOf(...given, ...more), async (arena, optimizer, group) => {
        for (let step = 0; step < 2; step++) {
          for (const { offset, length } of arena.segments) {
            const g = Float32Array.from({ length }, (_, i) => Math.sin(i + step + group.rank));
            noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(g)));
          }
          await optimizer.step({ lr: 0.01 });
        }
        const θ = (await arena.parameters.toTypedArray()) as Float32Array;
        return new Map(arena.segments.map(({ role, offset, length }) => [role, θ.slice(offset, offset + length)]));
      });
      return parameters!;
    };
    const [decayed, free, both] = await Promise.all([
      run("optimizer.weightDecay=0.5"),
      run("optimizer.weightDecay=0"),
      run("optimizer.weightDecay=0.5", "optimizer.noDecay=[head]"),
    ]);
    expect(both.get("head")).toEqual(free.get("head"));
    expect(both.get("head")).not.toEqual(decayed.get("head"));
    expect(both.get("matrix")).toEqual(decayed.get("matrix"));
    expect(both.get("matrix")).not.toEqual(free.get("matrix"));
  });

  it("refuses roles that no parameter has, and words that are none", () => {
    const without = segments.filter(({ role }) => role !== "vector");
    expect(() => groupsOf(methodsIn(recipeOf("optimizer.noDecay=[vector]"))[0]!, without)).toThrow(
      /^optimizer\.noDecay: no parameter is vector; there is embedding\.weight \(embedding\), /,
    );
    expect(() => recipeOf("optimizer.noDecay=[bias]")).toThrow(/optimizer\.noDecay\.0: expected one of matrix, vector/);
  });
});

describe("a run with groups that goes on from a save", () => {
  const groups =
    "optimizer.groups=[{ roles: [embedding], name: adamw, lr: 1e-3 }, { roles: [norm], name: one-bit-adam, warmup: 2 }]";
  const recipe = recipeOf(groups, "optimizer.noDecay=[head]");

  it("ends with the bits of a run that was not interrupted", async () => {
    const run = (steps: number, from?: { step: number; θ: TypedArray; state: Awaited<ReturnType<typeof stateOf>> }[]) =>
      onRanks(recipe, async (arena, optimizer, group) => {
        const saved = from?.[group.rank];
        if (saved) {
          noGrad(() => arena.parameters.copy_(fromTypedArray(saved.θ as Float32Array)));
          const none = { tensors: new Map<string, TypedArray>(), scalars: {} };
          await optimizer.restore(
            saved.step,
            [0, 1].map((rank) => (rank === group.rank ? saved.state : none)),
          );
        }
        for (let step = saved?.step ?? 0; step < steps; step++) {
          const values = Float32Array.from({ length: arena.gradients.length }, (_, i) =>
            Math.sin(i + step + group.rank),
          );
          noGrad(() => arena.gradients.zero_());
          for (const { offset, length } of arena.segments)
            noGrad(() =>
              arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values.slice(offset, offset + length))),
            );
          await optimizer.step({ lr: 0.01 / (1 + step) });
        }
        return { step: steps, θ: (await arena.parameters.toTypedArray()).slice(), state: await stateOf(optimizer) };
      });
    const whole = await run(5);
    const resumed = await run(5, await run(3));
    expect(whole[1]!.θ).toEqual(whole[0]!.θ);
    for (const rank of [0, 1]) {
      expect(resumed[rank]!.θ).toEqual(whole[rank]!.θ);
      expect(resumed[rank]!.state).toEqual(whole[rank]!.state);
    }
  });

  it("keeps which parameters have which optimizer; their options may change", () => {
    const resume = (...overrides: string[]) => resumedRecipe({ step: 1, recipe }, undefined, overrides, "R");
    expect(resume("optimizer.groups.0.lr=2e-3").recipe.optimizer.groups[0]).toMatchObject({ name: "adamw", lr: 2e-3 });
    const first = '{"name":"adamw","roles":["embedding"]}';
    for (const [other, difference] of [
      ["optimizer=null", '.name: none, and the save has "lion-cub"'],
      ["optimizer.groups=[]", `.groups.0: none, and the save has ${first}`],
      ["optimizer.groups=[null]", '.groups.0.name: none, and the save has "adamw"'],
      ["optimizer.groups=norm", `.groups: "norm", and the save has [${first}`],
      ["optimizer.groups.0.roles=[head]", '.groups.0.roles.0: "head", and the save has "embedding"'],
      ["optimizer.groups.1.name=lion", '.groups.1.name: "lion", and the save has "one-bit-adam"'],
    ] as const)
      expect(() => resume(other)).toThrow(`optimizer${difference}`);
    expect(() => resume("optimizer.groups.1.scale=fused", "optimizer.groups.1.warmup=5")).toThrow(
      /^optimizer\.groups\.1\.scale: "fused", and the save has "per-layer": the optimizer's state depends on it; take "per-layer" again[^\n]*$/,
    );
  });
});

describe("exchange.gradient", () => {
  const groups = "optimizer.groups=[{ roles: [embedding], name: lion }]";
  const all = ["optimizer.name=adamw", groups, "optimizer.noDecay=[norm]"];

  it("compresses the gradients of every group", () => {
    expect(new Set(Object.values(takers(...all, "exchange.gradient.name=dgc")))).toEqual(
      new Set(["adamw with dgc", "lion with dgc"]),
    );
  });

  it("is refused under a group that sends no mean gradient, and by groups where it works on the whole model", () => {
    const withDion = "optimizer.groups=[{ roles: [matrix], name: dion }]";
    expect(() => takers("optimizer.name=adamw", withDion, "exchange.gradient.name=dgc")).toThrow(
      "exchange.gradient: dgc compresses mean gradients, and dion does not send one in every step",
    );
    expect(() => takers(...all, "exchange.gradient.name=graddrop", "exchange.gradient.threshold=model")).toThrow(
      "optimizer.groups: lion with graddrop works on the whole model as one vector here, and cannot share it; take exchange.gradient.threshold: layer, or drop optimizer.groups",
    );
  });

  it("trains two ranks alike, by the bytes of its closed form", async () => {
    const recipe = recipeOf(...all, "exchange.gradient.name=powersgd", "compareEvery=1");
    const θ = await onRanks(recipe, async (arena, optimizer, group) => {
      for (let step = 0; step < 2; step++) {
        for (const { offset, length } of arena.segments) {
          const g = Float32Array.from({ length }, (_, i) => Math.sin(i + step + group.rank));
          noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(g)));
        }
        const closed = optimizer.bytesSent();
        const { bytes, messages } = await optimizer.step({ lr: 0.01 });
        expect(bytes - 32 * messages).toBe(closed);
        expect(closed).toBeLessThan(optimizer.denseBytes / 5);
      }
      return (await arena.parameters.toTypedArray()).slice();
    });
    expect(θ[1]).toEqual(θ[0]);
  });
});

const stateOf = async (optimizer: TrainingOptimizer) => {
  const { tensors, scalars } = await optimizer.state();
  const read = new Map<string, TypedArray>();
  for (const [name, tensor] of tensors) read.set(name, (await tensor.toTypedArray()).slice());
  return { tensors: read, scalars: structuredClone(scalars) };
};

async function onRanks<T>(
  recipe: ReturnType<typeof recipeOf>,
  task: (arena: Arena, optimizer: TrainingOptimizer, group: Group) => Promise<T>,
): Promise<T[]> {
  const ranks = loopback(2);
  try {
    return await Promise.all(
      ranks.map(async (group) => {
        const arena = new Arena(buildModel(recipe));
        await using optimizer = await buildOptimizer(recipe, arena, group);
        return await task(arena, optimizer, group);
      }),
    );
  } finally {
    await Promise.all(ranks.map((group) => group.close()));
  }
}
