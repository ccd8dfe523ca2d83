import { OptionsError } from "@terse/options";
import { describe, expect, it } from "vitest";
import { planText } from "./dry-run/dry-run.ts";
import { planOf } from "./dry-run/plan.ts";
import { methodName } from "./parameter-groups.ts";
import { readRecipe, remarksOn } from "./recipe.ts";
import { resumedRecipe } from "./resumed-recipe.ts";

const recipeOf = (...overrides: string[]) => readRecipe("gpt-small-adamw", ["model.preset=nano", ...overrides]);
const local = ["steps=40", "local.syncEvery=10"];

describe("a recipe with local steps", () => {
  it("takes DiLoCo's outer step unless it names another, or changes options of it", () => {
    expect(recipeOf().local).toBeUndefined();
    const standard = { name: "sgd", lr: 0.7, momentum: 0.9, nesterov: true };
    expect(recipeOf(...local).local).toMatchObject({ syncEvery: 10, fragments: 1, delay: 0, alpha: 0 });
    expect(recipeOf(...local).local!.optimizer).toMatchObject(standard);
    expect(recipeOf(...local, "local.optimizer.lr=0.4").local!.optimizer).toMatchObject({ ...standard, lr: 0.4 });
    const plain = recipeOf(...local, "local.optimizer.name=sgd", "local.optimizer.lr=1").local!.optimizer;
    expect(plain).toMatchObject({ name: "sgd", lr: 1, momentum: 0, nesterov: false });
    expect(recipeOf(...local, "local=null").local).toBeUndefined();
  });

  it("keeps how rounds are compressed where the ranks' own optimizer changes", () => {
    const given = ["optimizer.name=adamw", "optimizer.groups=[]"];
    expect(readRecipe("gpt-small-local-muon", given).exchange.gradient).toMatchObject({ codec: "bin-means", bits: 2 });
    expect(readRecipe("gpt-small-codec", ["optimizer.name=lion-cub"]).exchange.gradient).toBeUndefined();
  });

  it("is named by both of its methods", () => {
    const codec = ["exchange.gradient.name=codec", "exchange.gradient.codec=int8"];
    expect(methodName(recipeOf(...local, ...codec))).toBe("adamw, every 10 steps sgd, codec");
  });

  it("takes whole numbers of Lion's steps where every step moves an element by one learning rate", () => {
    const lion = [
      "optimizer.name=lion",
      "optimizer.lr=0.001",
      "optimizer.weightDecay=0",
      "schedule.name=constant",
      "schedule.warmup=0",
    ];
    const all = [...local, ...lion, "exchange.gradient.name=lion-steps"];
    // The unit is the run's learning rate, and the steps are those between two rounds.
    expect(recipeOf(...all).exchange.gradient).toMatchObject({ name: "lion-steps", unit: 0.001, steps: 10 });
    for (const [changes, message] of [
      [
        ["local=null"],
        /exchange\.gradient\.name: lion-steps sends what local steps of Lion have moved, .* take local\.syncEvery/,
      ],
      [["optimizer.name=adamw"], /optimizer\.name: .* and adamw does not; take lion/],
      [
        ["optimizer.weightDecay=0.1"],
        /optimizer\.weightDecay: .* set it to 0, and let a round decay as much: local\.optimizer\.weightDecay=0\.001/,
      ],
      [["schedule.name=cosine"], /schedule: cosine, .* take --schedule\.name=constant/],
      [["schedule.warmup=5"], /schedule: constant with a warm-up, and/],
      [
        ["exchange.gradient.unit=0.002"],
        /exchange\.gradient\.unit: 0\.002, .* is 0\.001; set it to 0\.001, or leave it out/,
      ],
      [["exchange.gradient.steps=9"], /exchange\.gradient\.steps: 9, .* is 10; set it to 10, or leave it out/],
      [
        ["local.syncEvery=200"],
        /local\.syncEvery: lion-steps has whole numbers for up to 127 steps, got 200; take fewer/,
      ],
      [["local.alpha=0.5"], /local\.alpha: 0\.5, .* set it to 0/],
      [["local.delay=1", "local.rebase=true"], /local\.rebase: true, .* set it to false/],
    ] as const)
      expect(() => recipeOf(...all, ...changes), String(changes)).toThrow(message);
  });

  it.each([
    [["local.fragments=3"], /local\.syncEvery: 10 is no multiple of local\.fragments, 3; take 9 or 12/],
    [["local.delay=10"], /local\.delay: a round leaves every 10 steps, .* from 0 to 9, got 10/],
    [["local.fragments=2", "local.delay=5"], /local\.delay: a round leaves every 5 steps \(syncEvery \/ fragments\)/],
    [["steps=45", "local.delay=1"], /steps: after 45 steps the last 5 would be in no round, .* take 40 or 50/],
    [["steps=5", "local.fragments=2"], /steps: after 5 steps the last 5 would .* local\.fragments .* take 10/],
    [["overlap=on"], /overlap: on, and with local nothing leaves during a backward: .* take auto/],
    [["parallel.weight=2"], /parallel\.weight: with local each rank has the whole state of its own steps/],
    [["local.alpha=1.5"], /local\.alpha/],
    [["local.ranksPerHost=2"], /local\.ranksPerHost: only within: host has it, .* set it to null, or take host/],
    [
      ["local.within=host", "exchange.vote=hierarchical", "local.optimizer.name=lion-cub", "local.optimizer.lr=1"],
      /exchange\.vote: hierarchical, and with local\.within: host one rank of each host votes .* take all-to-all/,
    ],
    [
      ["optimizer.name=lion-cub", "optimizer.momentumSync.segments=all"],
      /optimizer\.momentumSync\.segments: all, and with local a rank's momenta are its own; set it to none/,
    ],
    [["optimizer.name=zero-one-adam"], /optimizer\.localSteps: 16 of 0\/1 Adam's own, .* set it to 1, or take adamw/],
    [
      ["local.optimizer.name=zero-one-adam", "local.optimizer.lr=1"],
      /local\.optimizer\.name: after a local step of 0\/1/,
    ],
    [["local.optimizer.name=powersgd"], /local\.optimizer\.name: powersgd compresses the gradients of an optimizer/],
    [
      ["local.optimizer.name=lion-cub", "local.optimizer.lr=1", "exchange.gradient.name=terngrad"],
      /exchange\.gradient: terngrad compresses mean gradients, and lion-cub does not send one/,
    ],
  ])("is refused with a line that names the key: %j", (overrides, message) => {
    const read = () => recipeOf(...local, ...overrides);
    expect(read).toThrow(OptionsError);
    expect(read).toThrow(message);
  });

  it("goes on with whole numbers of Lion's steps that hold all that a rank has moved since the last round", () => {
    const lion = [
      ...local,
      "optimizer.name=lion",
      "optimizer.lr=0.001",
      "optimizer.weightDecay=0",
      "schedule.name=constant",
      "schedule.warmup=0",
      "exchange.gradient.name=lion-steps",
    ];
    const saved = recipeOf(...lion);
    const resumed = (step: number, ...changes: string[]) =>
      resumedRecipe({ step, recipe: saved }, undefined, changes, "R").recipe.exchange.gradient;
    // Where a round has just been used, unit and steps follow from the run as they did at its beginning.
    expect(resumed(20, "optimizer.lr=0.002", "local.syncEvery=5")).toMatchObject({ unit: 0.002, steps: 5 });
    expect(resumed(9, "local.syncEvery=20")).toMatchObject({ unit: 0.001, steps: 20 });
    expect(resumed(9, "local.syncEvery=7")).toMatchObject({ unit: 0.001, steps: 14 }); // from step 0 to step 14
    expect(() => resumed(9, "optimizer.lr=0.002")).toThrow(
      /^exchange\.gradient\.unit: 0\.002, and the save has 0\.001: between two rounds it stays, and optimizer\.lr with it/,
    );
    expect(() => resumed(9, "local.syncEvery=5", "exchange.gradient.steps=5")).toThrow(
      /^exchange\.gradient\.steps: 5, and local\.syncEvery is 5, and from the .* there are 10; set it to 10, or leave it/,
    );
    expect(() => resumed(9, "local.syncEvery=125", "steps=250")).not.toThrow();
    expect(() => resumed(9, "local.syncEvery=130", "steps=260")).toThrow(
      /^local\.syncEvery: .* up to 127 steps, got 130;/,
    );
  });

  it("with whole numbers of Lion's steps takes as many ranks as their sums have room for", async () => {
    const lion = [
      "steps=254",
      "local.syncEvery=127",
      "optimizer.name=lion",
      "optimizer.weightDecay=0",
      "schedule.name=constant",
      "schedule.warmup=0",
      "exchange.gradient.name=lion-steps",
    ];
    const link = { bitsPerSecond: 1e7, latency: 0.05 };
    const given = { link, speed: { flops: 1e9, measured: false } };
    await planOf(recipeOf(...lion), 16, given);
    await expect(planOf(recipeOf(...lion), 17, given)).rejects.toThrow(
      /^local\.syncEvery: 17 ranks of up to 127 steps sum up to ±2159, .* up to 2048; take at most 120$/,
    );
    await planOf(recipeOf(...lion, "local.within=host", "local.ranksPerHost=2"), 32, given);
  });

  it("counts the outer optimizer's steps in rounds, those that there were until a save", () => {
    const given = (steps: number, warmup: number) =>
      recipeOf(
        `steps=${steps}`,
        "local.syncEvery=4",
        "local.optimizer.name=one-bit-adam",
        "local.optimizer.lr=0.01",
        `local.optimizer.warmup=${warmup}`,
      );
    expect(() => given(12, 5)).toThrow(
      /^local\.optimizer\.warmup: 5 steps of warm-up, and the run has 3, .* \(a step of it is a round, every 4 steps\); take/,
    );
    const recipe = given(80, 10);
    const resumed = (rounds: number[]) => () =>
      resumedRecipe({ step: 60, rounds, recipe }, undefined, ["local.optimizer.warmup=12"], "R");
    expect(resumed([9])).not.toThrow(); // local steps began later than the run
    expect(resumed([15])).toThrow(/^local\.optimizer\.warmup: 12, and the save has 10: the warm-up is over/);
  });

  it("whose model has fewer layers than fragments is refused before the first step", async () => {
    const recipe = recipeOf("steps=200", "local.syncEvery=100", "local.fragments=50");
    await expect(planOf(recipe, 2)).rejects.toThrow(/^local\.fragments: 50 fragments need as many layers, and the/);
    await expect(planOf(recipeOf(...local, "local.alpha=1"), 2)).rejects.toThrow(/^local\.alpha: with 1 a rank never/);
  });

  it("says what one may not expect", () => {
    const of = (...overrides: string[]) => remarksOn(recipeOf(...local, "schedule.warmup=2", ...overrides));
    expect(of()).toEqual([]);
    expect(of("optimizer.name=one-bit-adam", "optimizer.warmup=2")).toContainEqual(
      expect.stringMatching(/^optimizer\.name: with local it steps alone, and one-bit-adam is adamw then/),
    );
    expect(of("local.optimizer.weightDecay=0.1")).toEqual([
      expect.stringMatching(
        /^local\.optimizer\.weightDecay: weights decay in each rank's own steps, and in the rounds/,
      ),
    ]);
    expect(of("local.alpha=0.5")).toEqual([expect.stringMatching(/^local\.alpha: 0\.5 of a rank's own work outlives/)]);
    expect(of("local.alpha=0.5", "local.delay=1")).toEqual([]);
    expect(of("local.delay=5")).toEqual([]);
    expect(of("local.delay=6")).toEqual([
      "local.delay: of 10 steps a rank gives up the 6 that it takes beside a round; local.rebase: true keeps them",
    ]);
    expect(of("local.delay=6", "local.rebase=true")).toEqual([]);
    expect(of("local.rebase=true")).toEqual([expect.stringMatching(/^local\.rebase: true changes nothing/)]);
    expect(of("local.syncEvery=41")).toEqual([
      "local.syncEvery: 41, and the run has 40 steps: the ranks share nothing before the last one",
    ]);
    expect(of("local.syncEvery=40")).toEqual([]);
    expect(of("local.order=sequential")).toEqual([expect.stringMatching(/^local\.order: sequential changes nothing/)]);
    expect(of("local.order=sequential", "local.fragments=2")).toEqual([]);
    expect(of("bucket=auto")).toEqual([expect.stringMatching(/^bucket: auto changes nothing: with local the buckets/)]);
  });
});

describe("local steps within hosts", () => {
  const within = [...local, "local.within=host", "local.fragments=2"];

  it("may overlap what the ranks of a host send each other, and have methods whose point is that", () => {
    const recipe = recipeOf(...within, "overlap=on", "optimizer.name=lion-cub", "schedule.warmup=2");
    expect(remarksOn(recipe)).toEqual([]);
  });

  it("are planned by the number of ranks on a host, which a dry run must be told", async () => {
    const link = { bitsPerSecond: 1e7, latency: 0.05 };
    const speed = { flops: 1e9, measured: false };
    await expect(planOf(recipeOf(...within), 6)).rejects.toThrow(
      /^local\.within: host: local\.ranksPerHost is missing/,
    );
    const plan = await planOf(recipeOf(...within, "local.ranksPerHost=2"), 6, { link, speed });
    const ofHosts = await planOf(recipeOf(...local, "local.fragments=2"), 3, { link, speed });
    expect(plan.denseBytes).toBeCloseTo((2 * 5 * plan.memory.parameters) / 6, -2); // of all ranks
    expect(plan.remarks).toEqual([]);
    const { remarks } = await planOf(recipeOf(...within, "local.ranksPerHost=6"), 6);
    expect(remarks).toContainEqual(expect.stringMatching(/^local\.within: host: all 6 ranks share a host, so they/));
    const longest = ({ phases }: typeof plan) => Math.max(...phases.map(({ time }) => time!.messages));
    expect(longest(plan)).toBeCloseTo(longest(ofHosts), 6); // three hosts share a round as three ranks do
    const bytesOf = ({ phases }: typeof plan, of: typeof Math.max) => of(...phases.map(({ bytes }) => bytes));
    expect(bytesOf(plan, Math.min)).toBeCloseTo(plan.memory.parameters, -3); // an all-reduce of two ranks
    expect(bytesOf(plan, Math.max)).toBeGreaterThan(bytesOf(ofHosts, Math.max) + bytesOf(plan, Math.min));
  });
});

describe("a dry run of local steps", () => {
  it("counts the bytes of rounds, and says how many steps hide one", async () => {
    const link = { bitsPerSecond: 1e7, latency: 0.05 };
    const recipe = recipeOf(...local, "local.fragments=2");
    const plan = await planOf(recipe, 3, { link, speed: { flops: 1e9, measured: false } });
    const n = plan.memory.parameters / 4;
    const sent = plan.phases.reduce((sum, { steps, bytes }) => sum + steps * bytes, 0);
    expect(sent / 4).toBeCloseTo((2 * 2 * 4 * n) / 3, -3); // four rounds of all parameters, by an all-reduce
    expect(plan.phases.find(({ bytes }) => bytes === 0)!.steps).toBe(32);
    const text = planText(plan, 3).join("\n");
    expect(text).toMatch(/^dry run: adamw, every 10 steps sgd on 3 ranks$/m);
    expect(text).toMatch(/^ {2}mean +[\d.]+ kB, [\d.]+ bits a parameter$/m);
    expect(text).toMatch(/^a round leaves every 5 steps, and takes [\d.]+ m?s/m);
  });
});
