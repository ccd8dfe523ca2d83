import { elements } from "@terse/checkpoint";
import { type Group, loopback, parseLink } from "@terse/collectives";
import { voteSchemes } from "@terse/exchange";
import { algorithms, gradientCompressions } from "@terse/optimizers";
import { Arena, fromTypedArray, noGrad } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { candidates, recipeOfCandidate } from "../advice/candidates.ts";
import { buildModel, buildOptimizer } from "../build.ts";
import { type Recipe, readRecipe } from "../recipe.ts";
import { methodsText, planText } from "./dry-run.ts";
import { methodsOf } from "./methods.ts";
import { planOf } from "./plan.ts";

const recipeOf = (...overrides: string[]) =>
  readRecipe("gpt-small-lion", ["optimizer.name=lion-cub", "model.preset=nano", "optimizer.clip=0", ...overrides]);
const link = parseLink("1gbit,50us");

/**
 * What ranks of this process really hold and send: of rank 0, the bytes of every step by the counters of its transport.
 */
async function trained(recipe: Recipe, ranks: number) {
  const groups = loopback(ranks);
  try {
    const [first] = await Promise.all(groups.map((group) => stepsOf(recipe, group)));
    return first!;
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

async function stepsOf(recipe: Recipe, group: Group) {
  const arena = new Arena(buildModel(recipe));
  await using optimizer = await buildOptimizer({ ...recipe, compareEvery: 0 }, arena, group);
  const { tensors } = await optimizer.state();
  const sent: number[] = [];
  for (let step = 0; step < recipe.steps; step++) {
    const values = Float32Array.from({ length: arena.gradients.length }, (_, i) => Math.sin(i + step));
    for (const { offset, length } of arena.segments)
      noGrad(() => arena.gradients.narrow(0, offset, length).copy_(fromTypedArray(values.slice(0, length))));
    const before = group.sent().bytes;
    await optimizer.step({ lr: 1e-3 });
    sent.push(group.sent().bytes - before);
  }
  return {
    sent,
    parameters: arena.parameters.length * elements.f32.bytes,
    state: [...tensors.values()].reduce((sum, { length, dtype }) => sum + length * elements[dtype].bytes, 0),
  };
}

describe("a dry run", () => {
  it.each(Object.keys(algorithms))("counts what a training with %s holds and sends, step by step", async (name) => {
    const create = algorithms[name as keyof typeof algorithms];
    const given = [`optimizer.name=${name}`, "steps=4", "bucket=1e9", "model.layers=1"];
    if ("warmup" in create.options.entries) given.push("optimizer.warmup=2");
    if (create().takes === "matrices") given.push("optimizer.groups=[{ roles: [embedding, norm, head], name: lion }]");
    const recipe = recipeOf(...given);
    const { phases, memory } = await planOf(recipe, 3);
    const real = await trained(recipe, 3);
    expect(phases.flatMap(({ steps, bytes }) => Array(steps).fill(bytes))).toEqual(real.sent);
    expect(memory).toMatchObject({ parameters: real.parameters, gradients: real.parameters, state: real.state });
  });

  it("counts the average of the weights, of the other methods too", async () => {
    const plan = await planOf(recipeOf("average.decay=0.9"), 2);
    expect(plan.memory.average).toBe(plan.memory.parameters);
    expect(planText(plan, 2).join("\n")).toMatch(/^ {2}average +\d/m);
    const without = await planOf(recipeOf(), 2);
    const [more, less] = [await methodsOf(plan, 2), await methodsOf(without, 2)];
    expect(more.own.memory - less.own.memory).toBe(plan.memory.parameters);
  });

  it("counts an adapter: its bytes in closed form, the weights beside it in their type, and 4 operations for each", async () => {
    const [rank, width, heads, layers] = [8, 64, 4, 2];
    const model = ["model.name=llama", "model.preset=tiny", `model.width=${width}`, `model.layers=${layers}`];
    const keys = [...model, `model.heads=${heads}`, "model.keyValueHeads=2", "optimizer.name=adamw", "steps=4"];
    const lora = ["adapter.name=lora", `adapter.rank=${rank}`, "adapter.targets=[q_proj, v_proj]"];
    const speed = { flops: 1e9, measured: false };
    const of = (...more: string[]) => planOf(recipeOf(...keys, ...more), 2, { link: parseLink("1gbit"), speed });
    const [whole, plan, held] = [await of(), await of(...lora), await of(...lora, "adapter.base=bf16")];
    // A (r, in) and B (out, r): q has as many outputs as inputs, and v half as many with half as many heads
    const n = layers * rank * (width + width + (width + width / 2));
    expect(plan).toMatchObject({ trained: n, parameters: whole.parameters + n, denseBytes: 4 * n });
    expect(plan.memory).toMatchObject({ frozen: 4 * whole.parameters, gradients: 4 * n, state: 8 * n });
    const norms = whole.byRole.get("norm")!; // stay in f32
    expect(held.memory.frozen).toBe(2 * (whole.parameters - norms) + 4 * norms);
    for (const { bytes } of plan.phases) expect(bytes).toBe(4 * n); // two ranks: half of n there, half back
    const [before, now] = [whole, plan].map(({ phases }) => phases.at(-1)!.time!.computing) as [number, number];
    expect(now / before).toBeGreaterThan(4 / 6);
    expect(now / before).toBeLessThan(0.8);
    const text = planText(plan, 2).join("\n");
    expect(text).toContain(`of which ${n.toLocaleString("en-US")} are trained`);
    expect(text).toMatch(/^ {2}frozen weights +\d/m);
  });

  it("prints steps that average momenta beside those that do not", async () => {
    const sync = "optimizer.momentumSync={ segments: all, every: 2 }";
    const recipe = recipeOf("steps=5", "bucket=1e9", "model.layers=1", sync);
    const plan = await planOf(recipe, 3);
    expect(plan.phases.flatMap(({ steps, bytes }) => Array(steps).fill(bytes))).toEqual(
      (await trained(recipe, 3)).sent,
    );
    const often = planText(await planOf({ ...recipe, steps: 5000 }, 3), 3).join("\n");
    expect(often).toMatch(/2500 steps in 0 to 4998 .*\n.*2500 steps in 1 to 4999 /);
  });

  it("takes no memory for a model of 1.6 billion parameters on 64 ranks", async () => {
    const before = process.memoryUsage().rss;
    const plan = await planOf(recipeOf("model.preset=1558M", "optimizer.name=adamw"), 64);
    expect(plan.parameters).toBeGreaterThan(1.5e9);
    expect(plan.memory).toMatchObject({ parameters: 4 * plan.parameters, state: 8 * plan.parameters });
    expect(process.memoryUsage().rss - before).toBeLessThan(1e9);
  });

  it.each([
    [["optimizer.name=lion-cub", "exchange.dense=bf16"], "exchange.dense: bf16 changes nothing: lion-cub with these"],
    [
      ["optimizer.name=lion-cub", "exchange.dense=int8", "optimizer.momentumSync.segments=all"],
      "exchange.dense: int8 changes nothing: lion-cub with these options sends no mean that could have this type",
    ],
    [["optimizer.name=adamw", "exchange.gradient.name=terngrad", "exchange.dense=f16"], "exchange.dense: f16 changes"],
    [
      ["optimizer.name=adamw", "exchange.computed=int8"],
      "exchange.computed: int8 changes nothing: adamw with these options sends nothing that one rank computes for all",
    ],
    [
      ["optimizer.name=adamw", "exchange.gradient={ name: powersgd, matrixApproximationRank: 200 }"],
      "exchange.gradient.matrixApproximationRank: with 200 no matrix of this model is compressed, and all gradients are sent whole; take at most ",
    ],
  ])("remarks on options that change nothing: %j", async (given, remark) => {
    expect((await planOf(recipeOf(...given), 3)).remarks).toEqual([expect.stringContaining(remark)]);
  });

  it.each([
    [["optimizer.name=adamw", "exchange.dense=bf16"]],
    [["optimizer.name=lion-cub", "exchange.dense=bf16", "optimizer.groups=[{ roles: [norm], name: adamw }]"]],
    [["optimizer.name=one-bit-adam", "exchange.dense=bf16", "optimizer.warmup=2"]],
    [["optimizer.name=adamw", "exchange.gradient.name=dgc", "exchange.dense=bf16"]], // its vectors
    [["optimizer.name=adamw", "exchange.gradient={ name: powersgd, matrixApproximationRank: 2 }"]],
    [
      [
        "optimizer.name=muon",
        "exchange.dense=int8",
        "exchange.computed=int8",
        "optimizer.groups=[{ roles: [embedding, norm, head], name: lion }]",
      ],
    ],
  ])("remarks on none that changes something: %j", async (given) => {
    expect((await planOf(recipeOf(...given), 3)).remarks).toEqual([]);
  });

  it("predicts the time of a step from the link and the operations of a rank", async () => {
    const speed = { flops: 1e10, measured: false };
    const recipe = recipeOf("model.preset=small", "optimizer.name=adamw", "overlap=off");
    const { phases, tokens, byRole, memory } = await planOf(recipe, 2, { link, speed });
    const { computing, messages, exposed } = phases[0]!.time!;
    const weights = byRole.get("matrix")! + byRole.get("head")!;
    expect(computing).toBeCloseTo((6 * weights * tokens!) / 2 / 1e10, 12);
    expect(messages).toBeGreaterThan((memory.parameters * 8) / 1e9); // two ranks send all their gradients
    expect(messages).toBeLessThan((1.2 * memory.parameters * 8) / 1e9);
    expect(exposed).toBe(messages);
    const overlapped = await planOf({ ...recipe, overlap: "auto" }, 2, { link, speed });
    const least = Math.max(0, messages - (2 / 3) * computing);
    expect(overlapped.phases[0]!.time!.exposed).toBeLessThan(messages);
    expect(overlapped.phases[0]!.time!.exposed).toBeGreaterThan(least);
  });

  it("lets votes to a server go beside its answers to the votes before", async () => {
    const slow = { link: parseLink("1mbit,1us"), speed: { flops: 1e12, measured: false } }; // messages alone
    const recipe = recipeOf("model.preset=small", "exchange.vote=parameter-server", "bucket=400000");
    const { messages, exposed } = (await planOf(recipe, 2, slow)).phases[0]!.time!;
    expect(exposed).toBeLessThan(0.6 * messages); // half, and the last answer
    expect(exposed).toBeGreaterThan(0.5 * messages);
  });

  it("prints parameters, memory, bytes of each phase and times, and what it assumes", async () => {
    const recipe = recipeOf(
      "steps=100",
      "optimizer.name=one-bit-adam",
      "optimizer.beta2=0.9",
      "optimizer.groups=[{ roles: [norm], name: lion }]",
    );
    const plan = await planOf(recipe, 8, { link, speed: { flops: 5e13, measured: false } });
    const text = planText(plan, 8).join("\n");
    expect(text).toMatch(/^dry run: one-bit-adam and lion on 8 ranks\nmodel gpt, 0\.\d\d M parameters \(embedding /);
    expect(text).toMatch(/100 steps of 32 rows, 2,048 tokens/);
    for (const label of ["parameters", "gradients", "optimizer state", "messages"])
      expect(text).toMatch(new RegExp(`^ {2}${label} +(at most )?[\\d.]+ [kM]?B$`, "m"));
    expect(text).toMatch(/^ {2}steps 0 to 19 +[\d.]+ MB\n {2}steps 20 to 99 +[\d.]+ kB$/m);
    expect(text).toMatch(/^time of a step, predicted: .* at 50,000 Gflop\/s, as given$/m);
    expect(text).toMatch(/^messages leave in \d+ buckets? while backward runs$/m);
    expect(text).toMatch(
      /^ {2}steps 20 to 99 +[\d.]+ µs: forward and backward [\d.]+ µs; messages [\d.]+ µs, of which /m,
    );
    expect(plan.remarks).toEqual([
      "optimizer.warmup is auto: it ends when the variance is stable, here after 20 steps",
    ]);
    expect(planText(await planOf(recipeOf(), 1), 1).join("\n")).toMatch(/sent: nothing, one rank\ntime: give --link/);
  });

  it("refuses what a training on so many ranks would refuse", async () => {
    const field = recipeOf("exchange.vote=count", "exchange.width=2");
    await expect(planOf(field, 4)).rejects.toThrow(/^exchange\.width: count: 4 ranks/);
    const direct = recipeOf("optimizer.bits=8", "optimizer.sum=direct");
    await expect(planOf(direct, 300)).rejects.toThrow(/^optimizer\.bits: l1: 300 ranks/);
    const average = recipeOf("optimizer.name=distributed-lion", "optimizer.vote=average", "optimizer.zero=hold");
    await expect(planOf(average, 4000)).rejects.toThrow(/^optimizer\.vote: sumOfLevels: 4000 ranks/);
    const masked = recipeOf("exchange.vote=hierarchical", "exchange.ranksPerHost=2", "optimizer.maskEvery=9");
    await expect(planOf(masked, 4)).rejects.toThrow(/^exchange\.vote: hierarchical: this vote scheme/);
    expect((await planOf(field, 3)).phases).toHaveLength(1);
    await expect(planOf(recipeOf("exchange.vote=hierarchical"), 4)).rejects.toThrow(/ranksPerHost is missing/);
    for (const silent of [["optimizer.bits=5"], ["optimizer.name=adamw"]])
      await expect(planOf(recipeOf("exchange.vote=count", ...silent), 4)).rejects.toThrow(
        /^exchange\.vote: (lion-cub|adamw) with these options sends no votes, and vote is count; leave exchange\.vote out/,
      );
    const groups = "optimizer.groups=[{ parameters: nowhere, name: lion }]";
    await expect(planOf(recipeOf(groups), 4)).rejects.toThrow(/^optimizer\.groups\.0: matches no parameter; there is/);
  });
});

describe("a dry run counts what a training holds and sends, step by step,", () => {
  /** On rank 0. */
  async function compared(ranks: number, ...given: string[]) {
    const recipe = recipeOf("bucket=1e9", "model.layers=1", ...given);
    const { phases, memory } = await planOf(recipe, ranks);
    const real = await trained(recipe, ranks);
    expect(phases.flatMap(({ steps, bytes }) => Array(steps).fill(bytes))).toEqual(real.sent);
    expect(memory).toMatchObject({ parameters: real.parameters, gradients: real.parameters, state: real.state });
    return real;
  }

  /** Some begin after a few steps, and one needs a codec. */
  const short: Readonly<Record<string, readonly string[]>> = {
    codec: ["exchange.gradient.codec=int8"],
    dgc: ["exchange.gradient.warmup=2"],
    powersgd: ["exchange.gradient.startPowerSGDIter=2", "exchange.gradient.matrixApproximationRank=2"],
  };

  // Whole numbers of Lion's steps are for rounds of local steps alone.
  const ofSteps = Object.keys(gradientCompressions).filter((name) => name !== "lion-steps");

  it.each(ofSteps)("of gradients that %s compresses", async (name) => {
    const given = [`exchange.gradient.name=${name}`, ...(short[name] ?? [])];
    for (const ranks of [2, 3]) {
      const { sent, parameters } = await compared(ranks, "optimizer.name=sgd", "steps=4", ...given);
      expect(sent[3]).toBeLessThan((2 * (ranks - 1) * parameters) / ranks); // compressed by then
    }
  });

  it("of dion over a mesh", async () => {
    const groups = "optimizer.groups=[{ roles: [embedding, norm, head], name: lion }]";
    const given = ["optimizer.name=dion", groups, "steps=3"];
    const [sharded, whole] = [await compared(4, ...given, "parallel.weight=2"), await compared(4, ...given)];
    expect(sharded.state).toBeLessThan(whole.state);
  });

  it("of 0/1 Adam with local steps", async () => {
    const policies = ["freeze=2", "kappa=1", "doubling=1", "localSteps=2"].map((policy) => `optimizer.${policy}`);
    const { sent } = await compared(3, "optimizer.name=zero-one-adam", "steps=8", ...policies);
    expect(sent.map((bytes) => bytes === 0)).toEqual([0, 0, 0, 0, 1, 0, 1, 0].map(Boolean));
  });
});

describe("the other methods of a dry run", () => {
  const speed = { flops: 1e10, measured: false };
  const sum = (memory: object) => Object.values(memory).reduce((all: number, bytes: number) => all + bytes, 0);

  it("need what a dry run of their own counts and predicts", async () => {
    const recipe = recipeOf("model.preset=small", "optimizer.clip=1");
    const methods = await methodsOf(await planOf(recipe, 8, { link, speed }), 8, 4);
    expect(methods.leftOut).toEqual([]);
    expect(methods.others.map(({ name }) => name).sort()).toEqual(candidates.map(({ name }) => name).sort());
    for (const name of ["adamw, terngrad", "sgd, dgc 0.1%", "dion, rank 1/4", "demo"]) {
      const candidate = candidates.find((each) => each.name === name)!;
      const { memory, phases } = await planOf(recipeOfCandidate(recipe, candidate), 8, { link, speed });
      const { bytes, time } = phases.at(-1)!;
      const row = methods.others.find((each) => each.name === name)!;
      expect(row).toMatchObject({ memory: sum(memory), bytes });
      expect(row.time!.exposed).toBeCloseTo(time!.exposed, 12);
      expect(row.time!.step).toBeCloseTo(time!.computing + time!.exposed, 12);
    }
    const times = methods.others.map(({ time }) => time!.step);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it("count votes by every scheme but auto, which is one of them", () => {
    const schemes = Object.keys(voteSchemes).filter((name) => name !== "auto");
    expect(candidates.flatMap(({ exchange }) => exchange?.["vote"] ?? []).sort()).toEqual(schemes.sort());
  });

  it("have the mean of steps that take turns: 0/1 Adam sends in one of 16", async () => {
    const recipe = recipeOf("steps=64");
    const { others } = await methodsOf(await planOf(recipe, 4), 4);
    const { optimizer } = candidates.find(({ name }) => name === "zero-one-adam")!;
    const own = recipeOf("steps=64", ...Object.entries(optimizer).map(([key, value]) => `optimizer.${key}=${value}`));
    const bytes = new Set((await planOf(own, 4)).phases.map((phase) => phase.bytes));
    const [local, synchronising] = [...bytes].sort((a, b) => a - b) as [number, number];
    expect(others.find(({ name }) => name === "zero-one-adam")!.bytes).toBeCloseTo(
      (15 * local + synchronising) / 16,
      6,
    );
  });

  it("are a table of at most 100 columns, and a line for each that cannot run", async () => {
    const plan = await planOf(recipeOf(), 4, { link, speed });
    const text = methodsText(await methodsOf(plan, 4));
    expect(text[1]).toMatch(/^ +memory +sent +step +waiting$/);
    expect(text[2]).toMatch(/^ {2}this recipe( +[\d.]+ [kM]?B){2}( +[\d.]+ [mµ]?s){2}$/);
    for (const line of text.slice(1, -1)) expect(line.length).toBeLessThanOrEqual(100);
    expect(text.at(-1)).toMatch(
      /^lion-cub, 1 bit, hierarchical is left out: exchange\.vote: .*ranksPerHost is missing/,
    );
    const unlinked = methodsText(await methodsOf(await planOf(recipeOf(), 4), 4, 2));
    expect(unlinked[1]).toMatch(/^ +memory +sent$/);
  });
});
