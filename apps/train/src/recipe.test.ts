import { mkdtempSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { models } from "@terse/models";
import { algorithms, gradientCompressions } from "@terse/optimizers";
import { applyOverrides, listOptions, OptionsError } from "@terse/options";
import { describe, expect, it } from "vitest";
import { schemesOf } from "./build.ts";
import { droppedOptions, readRecipe, remarksOn } from "./recipe.ts";
import { recipeSchema } from "./recipe-schema.ts";
import { changesOf, resumedRecipe } from "./resumed-recipe.ts";
import { schedules } from "./schedules/schedules.ts";

function file(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), "terse-recipe-")), "recipe.yaml");
  writeFileSync(path, text);
  return path;
}

/** As the optimizer itself has it. */
function firstLocalStep(freeze: number, doubling: number): number {
  const { isLocal } = algorithms["zero-one-adam"]({ freeze, doubling });
  let step = 0;
  while (!isLocal!(step)) step++;
  return step;
}

describe("a recipe", () => {
  it("by default trains a small GPT with AdamW and gradients in four bits", () => {
    const recipe = readRecipe("gpt-small", []);
    expect(recipe.model).toMatchObject({ name: "gpt", preset: "small" });
    expect(recipe.optimizer).toMatchObject({ name: "adamw", beta1: 0.9, beta2: 0.999, eps: 1e-8 });
    expect(recipe.exchange.gradient).toMatchObject({ name: "qsgd", bits: 4 });
  });

  it("takes typed overrides", () => {
    const recipe = readRecipe("gpt-small", [
      "optimizer.lr=3e-4",
      "steps=1_000",
      "optimizer.name=adamw",
      "optimizer.eps=1e-6",
    ]);
    expect(recipe.optimizer).toMatchObject({ name: "adamw", lr: 3e-4, eps: 1e-6 });
    expect(recipe.steps).toBe(1000);
  });

  it("selects the momenta that are averaged", () => {
    const of = (...overrides: string[]) => {
      const { optimizer } = readRecipe("gpt-small-lion", ["optimizer.name=lion-cub", ...overrides]);
      return "momentumSync" in optimizer ? optimizer.momentumSync : undefined;
    };
    expect(of()).toEqual({ segments: "none", every: 10, late: false });
    expect(of("optimizer.momentumSync.segments=first-and-last", "optimizer.momentumSync.late=true")).toEqual({
      segments: "first-and-last",
      every: 10,
      late: true,
    });
    expect(of("optimizer.momentumSync.segments.role=head")).toMatchObject({ segments: { role: "head" } });
    expect(of("optimizer.name=distributed-lion", 'optimizer.momentumSync.segments.match="^blocks"')).toMatchObject({
      segments: { match: "^blocks" },
    });
  });

  it("selects the schemes of votes and means", () => {
    const of = (...overrides: string[]) => {
      const { votes, means, computed } = schemesOf(readRecipe("gpt-small-lion-cub", overrides));
      return [votes.name, means.type, computed];
    };
    expect(of()).toEqual(["all-to-all", "f32", "f32"]);
    const typed = ["exchange.dense=bf16", "exchange.computed=int8"];
    expect(of("exchange.vote=count", "exchange.width=8", ...typed)).toEqual(["count", "bf16", "int8"]);
    const hosts = ["exchange.vote=hierarchical", "exchange.ranksPerHost=4"];
    expect(of(...hosts)).toEqual(["hierarchical", "f32", "f32"]);
    for (const inside of ["signs", "dense"]) {
      const { votes } = schemesOf(readRecipe("gpt-small", [...hosts, `exchange.inside=${inside}`]));
      expect(votes.dense).toBe(inside === "dense");
    }
    expect(() => of("exchange.inside=dense")).toThrow(/exchange\.inside: only vote: hierarchical has it/);
    const auto = readRecipe("gpt-small", ["exchange.vote=auto", "exchange.chunk=640"]);
    const link = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 0, burst: 0 };
    expect(schemesOf(auto, { measured: { link, codec: {} as never } }).votes.name).toBe("auto");
    expect(() => of("exchange.vote=hierarchical")).toThrow(
      /^exchange\.vote: hierarchical: exchange\.ranksPerHost is missing: give the number of ranks on a host$/,
    );
    expect(() => of("exchange.width=4")).toThrow(/exchange\.width: only vote: count has it, and vote is all-to-all/);
    expect(() => of("exchange.vote=count", "exchange.width=3")).toThrow("exchange.vote: count: width is 3");
    expect(() => of("exchange.chunk=100")).toThrow(
      "exchange.vote: all-to-all: chunk is 100, and must be a multiple of 64 elements; take 128",
    );
  });

  it.each([
    ["exchange.vote=paramter-server", /exchange\.vote.*parameter-server/],
    ["exchange.dense=f8", /exchange\.dense.*bf16/],
    ["exchange.computed=f8", /exchange\.computed.*bf16/],
    ["optimizer.name=lion-cup", /lion-cup.*lion-cub/s],
    ["optimizer.beta11=0.9", /optimizer\.beta11.*did you mean beta1/],
    ["optimizer.lr=fast", /optimizer\.lr: expected a number > 0, got "fast"/],
    [
      "optimizer.lr=1e39",
      /optimizer\.lr: expected a number > 0 as a 32-bit float, got 1e\+39, which is Infinity there/,
    ],
    ["optimizer.weightDecay=1e39", /optimizer\.weightDecay: .*Infinity/],
    [
      "optimizer.name=lion-cub optimizer.momentumSync.segments=fist-and-last",
      /momentumSync\.segments: .*first-and-last/,
    ],
    ["optimizer.name=lion-cub optimizer.momentumSync.segments.rolle=head", /momentumSync\.segments.*role/],
    ["optimizer.name=lion-cub optimizer.momentumSync.evry=3", /momentumSync\.evry.*did you mean every/],
    ["steps=0", /steps/],
    ["model.preset=smal", /small/],
    ["modle.preset=small", /modle.*model/],
    ["data.batchSize=2.5", /data\.batchSize/],
  ])("refuses %s and suggests a correction", (override, message) => {
    expect(() => readRecipe("gpt-small", override.split(" "))).toThrow(message);
  });

  it("refuses a warm-up that is as long as the run", () => {
    const given = ["optimizer.name=one-bit-adam", "steps=50"];
    expect(() => readRecipe("gpt-small", [...given, "optimizer.warmup=50"])).toThrow(
      "optimizer.warmup: 50 steps of warm-up, and the run has 50, so nothing would be compressed; take a shorter warm-up, or more steps",
    );
    expect(readRecipe("gpt-small", [...given, "optimizer.warmup=49"]).optimizer).toMatchObject({ warmup: 49 });
  });

  it("says what is never reached in so short a run", () => {
    const of = (name: string, ...options: string[]) => {
      const given = [`optimizer.name=${name}`, ...options.map((option) => `optimizer.${option}`)];
      return remarksOn(readRecipe("gpt-small", ["steps=50", "schedule.warmup=5", ...given]));
    };
    expect(of("zero-one-adam")).toEqual([
      "optimizer.localSteps: local steps begin after freeze + doubling, 2000 steps, and the run has 50, so there is none; take a smaller freeze or doubling, or more steps",
    ]);
    expect(of("zero-one-adam", "localSteps=1")).toEqual([]);
    expect(of("one-bit-adam")).toEqual([
      "optimizer.warmup: auto ends after 2000 steps at the earliest, and the run has 50, so nothing is compressed; give a number of steps, or a share of the run such as 0.2",
    ]);
    expect(of("one-bit-lamb", "beta2=0.95")).toEqual([]);
    for (const [doubling, steps] of [
      [10, 51],
      [11, 53],
    ] as const) {
      const remarks = (length: number) =>
        remarksOn(
          readRecipe("gpt-small", [
            ...["optimizer.name=zero-one-adam", "optimizer.freeze=40", `optimizer.doubling=${doubling}`],
            ...[`steps=${length}`, "schedule.warmup=5"],
          ]),
        );
      expect(firstLocalStep(40, doubling)).toBe(steps - 1);
      expect(remarks(steps)).toEqual([]);
      expect(remarks(steps - 1)).toHaveLength(1);
    }
    const sync = (more: string) => of("lion-cub", `momentumSync={ segments: all, ${more} }`);
    expect(sync("every: 51")).toEqual([
      "optimizer.momentumSync.every: 51, and the run has 50 steps, so no momenta are averaged; take fewer, or more steps",
    ]);
    expect(sync("every: 50")).toEqual([]);
    expect(sync("every: 50, late: true")).toHaveLength(1); // the mean would arrive in the step after
    expect(of("lion-cub", "momentumSync={ segments: none, every: 51 }")).toEqual([]);
  });

  it("says that Deep Gradient Compression has a momentum where the optimizer has one, too", () => {
    const of = (...given: string[]) => remarksOn(readRecipe("gpt-small-dgc", given));
    expect(of()).toEqual([]);
    const twice = "so there are two; set it to 0, or take sgd without momentum";
    expect(of("optimizer.momentum=0.9")).toEqual([expect.stringContaining(`sgd has a momentum of its own, ${twice}`)]);
    const adamw = ["optimizer.name=adamw", "exchange.gradient.name=dgc"];
    expect(of(...adamw)).toEqual([expect.stringContaining(`adamw has a momentum of its own, ${twice}`)]);
    expect(of(...adamw, "exchange.gradient.momentum=0")).toEqual([]);
  });

  it("takes a warm-up as a fraction of the run, and keeps its steps when the run goes on for longer", () => {
    const recipe = readRecipe("gpt-small", [
      "optimizer.name=one-bit-lamb",
      "optimizer.warmup=0.2",
      "optimizer.groups=[{ roles: [embedding], name: one-bit-adam, warmup: 0.001 }, { roles: [head], name: lion }]",
      "steps=50",
    ]);
    expect(recipe.optimizer).toMatchObject({ warmup: 10, groups: [{ warmup: 1 }, {}] });
    const { recipe: longer } = resumedRecipe({ step: 50, recipe }, undefined, ["steps=100"], "R");
    expect(longer.optimizer).toMatchObject({ warmup: 10 });
    expect(() => readRecipe("gpt-small", ["optimizer.name=one-bit-lamb", "optimizer.warmup=0"])).toThrow(
      /optimizer\.warmup: .*got 0/,
    );
  });

  it("takes a compression of gradients under an optimizer that takes their mean", () => {
    const given = (name: string, ...overrides: string[]) => [
      `optimizer.name=${name}`,
      "steps=50",
      ...overrides.map((override) => `exchange.gradient.${override}`),
    ];
    const { exchange } = readRecipe("gpt-small", given("adamw", "name=dgc", "ratio=0.01", "warmup=20"));
    expect(exchange.gradient).toMatchObject({ name: "dgc", ratio: 0.01, momentum: 0.9, warmup: 20 });
    for (const name of ["lion-cub", "one-bit-adam"])
      expect(() => readRecipe("gpt-small", given(name, "name=qsgd"))).toThrow(
        `exchange.gradient: qsgd compresses mean gradients, and ${name} does not send one in every step; take an optimizer that does, such as sgd`,
      );
    expect(() => readRecipe("gpt-small", given("sgd", "name=codec", "codec=sign"))).toThrow(
      "exchange.gradient.errorFeedback: sign has none, because it sends no magnitude; set errorFeedback to false",
    );
    expect(() => readRecipe("gpt-small", given("sgd", "name=dgc", "warmup=50"))).toThrow(
      "exchange.gradient.warmup: 50, and the run has 50 steps",
    );
    expect(() => readRecipe("gpt-small", given("sgd", "name=dcg"))).toThrow(/exchange\.gradient\.name.*dgc/);
    expect(() => readRecipe("gpt-small", given("sgd", "name=qsgd", "bits=9"))).toThrow(/exchange\.gradient\.bits.*≤ 8/);
  });

  it.each([
    ["exchange.gradient", "powersgd", "rank", "matrixApproximationRank"],
    ["exchange.gradient", "powersgd", "startIteration", "startPowerSGDIter"],
    ["exchange.gradient", "powersgd", "errorFeedback", "useErrorFeedback"],
    ["exchange.gradient", "powersgd", "seed", "randomSeed"],
    ["optimizer", "muon", "adjustLr", "adjustLrFn"],
  ])("names, of %s %s, for the old name %s the new one", (section, name, old, key) => {
    expect(() => readRecipe("gpt-small", [`${section}.name=${name}`, `${section}.${old}=1`])).toThrow(
      `${section}.${old}: unknown option; did you mean ${key}?`,
    );
  });

  it.each([
    ["optimizer=adam", "optimizer", "optimizer.name=adamw", "name: adamw below optimizer:"],
    ["model=gpt2", "model", "model.name=gpt2", "name: gpt2 below model:"],
    [
      "exchange.gradient=powersgd",
      "exchange.gradient",
      "exchange.gradient.name=powersgd",
      "name: powersgd below gradient:",
    ],
    ["data=x", "data", "data.name=NAME", "name: NAME below data:"],
  ])("says of %s, a section that is a word, how its name is given", (override, key, name, inYaml) => {
    const word = override.split("=")[1];
    expect(() => readRecipe("gpt-small", [override])).toThrow(
      `${key}: expected a group of options with name, got "${word}"; write --${name}, or in YAML ${inYaml}`,
    );
  });

  it.each(["learningRate", "learning-rate", "learning_rate"])("names lr for optimizer.%s", (key) => {
    expect(() => readRecipe("gpt-small", [`optimizer.${key}=1`])).toThrow(
      `optimizer.${key}: unknown option; did you mean lr?`,
    );
  });

  it("says where a compression of gradients belongs that is given as an optimizer", () => {
    for (const name of Object.keys(gradientCompressions)) {
      const problem = (key: string) =>
        `${key}.name: ${name} compresses the gradients of an optimizer, such as sgd, adamw, lion, lamb or muon; name that here, and give --exchange.gradient.name=${name}`;
      expect(() => readRecipe("gpt-small", [`--optimizer.name=${name}`])).toThrow(problem("optimizer"));
      expect(() => readRecipe("gpt-small", [`--optimizer.groups=[{ roles: [head], name: ${name} }]`])).toThrow(
        problem("optimizer.groups.0"),
      );
    }
  });

  it("drops the options that only the file's own choice has, and says so", () => {
    const recipe = file(
      "optimizer: { name: lion-cub, lr: 1e-3, bits: 2, beta1: 0.8 }\nsteps: 1\nmodel: { name: gpt }\ndata: { name: text }",
    );
    const adamw = ["optimizer.name=adamw", "optimizer.eps=1e-6"];
    expect(readRecipe(recipe, adamw).optimizer).toMatchObject({ name: "adamw", lr: 1e-3, beta1: 0.8, eps: 1e-6 });
    expect(droppedOptions(recipe, adamw)).toEqual([
      "optimizer.name is adamw: the recipe's bits is for lion-cub and does not count",
    ]);
    expect(droppedOptions(recipe, ["optimizer.name=lion-cub"])).toEqual([]);
    expect(() => readRecipe(recipe, [...adamw, "optimizer.bits=2"])).toThrow(/optimizer\.bits: unknown option/);
    // Both models have the key `preset`, with other values.
    expect(readRecipe("gpt-small", ["model.name=gpt2"]).model).toMatchObject({ name: "gpt2", preset: "gpt2" });
    expect(() => readRecipe("gpt-small", ["model.name=gpt2", "model.preset=small"])).toThrow(/model\.preset: expected/);
  });

  it("drops the file's compression of gradients under another optimizer, and where it is null", () => {
    const of = (...overrides: string[]) => readRecipe("gpt-small", overrides).exchange.gradient?.name;
    const other = ["optimizer.name=sgd", "exchange.dense=bf16"];
    expect(of(...other)).toBeUndefined();
    expect(droppedOptions("gpt-small", other)).toContain(
      "optimizer.name is sgd: the recipe's exchange.gradient, qsgd, is for adamw and does not count",
    );
    expect(of(...other, "exchange.gradient.name=terngrad")).toBe("terngrad");
    expect(of(...other, "--exchange.gradient={ name: qsgd }")).toBe("qsgd");
    expect(of("optimizer.lr=1e-3")).toBe("qsgd");
    expect(of("exchange.gradient=null")).toBeUndefined();
    const stop = (...overrides: string[]) =>
      readRecipe("gpt-small", ["evaluate.every=2", "stop={ target: 1, patience: 3 }", ...overrides]).stop;
    expect(stop("stop.target=null")).toEqual({ patience: 3, minDelta: 0 });
    expect(stop("stop=null")).toBeUndefined();
    expect(() => readRecipe("gpt-small", ["steps=null"])).toThrow(/^steps: expected an integer ≥ 1, got null/);
    expect(droppedOptions("gpt-small", ["exchange.gradient=null"])).toEqual([]);
  });

  it("treats what it extends as the command line treats the recipe: the same is kept, the same is dropped and said", () => {
    const base = "gpt-small"; // AdamW with QSGD
    const changes: readonly (readonly string[])[] = [
      ["optimizer.name=lion-cub"],
      ["optimizer.name=sgd", "optimizer.momentum=0.9"],
      ["optimizer.name=sgd", "exchange.gradient.name=qsgd", "exchange.gradient.bits=4"],
      ["exchange.gradient.name=powersgd"],
      ["exchange.gradient=null"],
      ["schedule.name=constant"],
      ["model.name=gpt2", "optimizer.name=lion"],
      ["optimizer.groups=[{ roles: [head], name: sgd }]"],
      ["steps=7"],
    ];
    for (const change of changes) {
      const extending = file(JSON.stringify({ extends: base, ...applyOverrides({}, change) }));
      expect(readRecipe(extending, [])).toEqual(readRecipe(base, change));
      const said = (whose: string) => (line: string) => line.replaceAll(whose, "");
      expect(droppedOptions(extending, []).map(said("gpt-small's "))).toEqual(
        droppedOptions(base, change).map(said("the recipe's ")),
      );
    }
    const lion = file("extends: gpt-small\noptimizer: { name: lion-cub }");
    expect(droppedOptions(lion, ["schedule.name=constant"])).toEqual([
      "optimizer.name is lion-cub: gpt-small's exchange.gradient, qsgd, is for adamw and does not count",
      "schedule.name is constant: the recipe's final is for cosine and does not count",
    ]);
    // The compression counts where the recipe itself names no optimizer.
    const part = file("extends: gpt-small\nexchange: { gradient: { name: qsgd } }");
    expect(readRecipe(part, []).exchange.gradient?.name).toBe("qsgd");
  });

  it("drops in every section what another name there does not take", () => {
    const given = file(
      [
        "extends: gpt-small-adamw",
        "optimizer: { groups: [{ roles: [head], name: lion-cub, bits: 2, lr: 1e-3 }] }",
        "exchange: { gradient: { name: powersgd, matrixApproximationRank: 2 } }",
      ].join("\n"),
    );
    const change = ["optimizer.groups.0.name=adamw", "exchange.gradient.name=terngrad"];
    const { optimizer, exchange } = readRecipe(given, change);
    expect([optimizer.groups[0], exchange.gradient]).toMatchObject([{ name: "adamw", lr: 1e-3 }, { name: "terngrad" }]);
    expect(droppedOptions(given, change)).toEqual([
      "optimizer.groups.0.name is adamw: the recipe's bits is for lion-cub and does not count",
      "exchange.gradient.name is terngrad: the recipe's matrixApproximationRank is for powersgd and does not count",
    ]);
    // All of them, also those that the new one knows by the same name.
    const codec = ["exchange.gradient.name=codec", "exchange.gradient.codec=int8"];
    expect(readRecipe("gpt-small", codec).exchange.gradient).not.toHaveProperty("bits");
    expect(droppedOptions("gpt-small", codec)).toEqual([
      "exchange.gradient.name is codec: the recipe's bits is for qsgd and does not count",
    ]);
    expect(droppedOptions("gpt-small", [...codec, "exchange.gradient.bits=8"])).toEqual([]);
  });

  it.each(["[1]", "word", "3"])("that is %s in place of keys is refused", (text) => {
    expect(() => readRecipe(file(text), [])).toThrow(
      "recipe.yaml: expected the keys of a recipe, such as steps: 500, got",
    );
  });

  describe("for every key, and values of every type", () => {
    const words = (takes: string) => /^one of (.*)$/.exec(takes)?.[1]?.split(", ") ?? [];
    const numbers = ["0", "-0", "1", "64", "0.5", "1e39", ".inf"];
    const others = ["null", "true", "word", "[]", "{}", "[embedding]", "auto"];
    /** Each override, with the choice that has the key. */
    const all = listOptions(recipeSchema).flatMap(({ name, takes, only = [] }) =>
      [...words(takes), ...numbers, ...others].map((value) => [only, `${name}=${value}`].flat()),
    );
    const sections = ["model", "data", "optimizer", "schedule", "exchange", "exchange.gradient", "parallel", "save"];
    for (const section of sections)
      for (const value of [...others, "{ name: sgd, lr: 1 }"]) all.push([`${section}=${value}`]);
    for (const name of Object.keys(models)) all.push([`model={ name: ${name} }`]);
    for (const name of Object.keys(algorithms)) {
      all.push(
        [`optimizer={ name: ${name}, lr: 1 }`],
        [`optimizer={ name: ${name}, lr: 1 }`, "exchange.gradient=null"],
      );
      all.push([`optimizer.groups=[{ roles: [head], name: ${name} }]`]);
      all.push(["optimizer.groups.0.roles=[head]", `optimizer.groups.0.name=${name}`, "optimizer.groups.0.lr=1"]);
    }
    for (const name of Object.keys(gradientCompressions)) all.push([`exchange={ gradient: { name: ${name} } }`]);
    for (const name of Object.keys(schedules)) all.push([`schedule={ name: ${name} }`]);
    const accepted = (file: string, overrides: readonly string[]) => {
      try {
        return readRecipe(file, overrides);
      } catch (error) {
        expect(error, overrides.join(" ")).toBeInstanceOf(OptionsError);
        return undefined;
      }
    };

    /** The recipe of a run that is resumed before its first step, so that no change comes too late. */
    const resumed = (written: string, overrides: readonly string[]) =>
      JSON.stringify(resumedRecipe({ step: 0, recipe: JSON.parse(written) }, written, overrides, "R").recipe);

    it.each(["gpt-small", "gpt-small-dion"])(
      "%s: what a start accepts, its restart accepts, and a resume takes it or says that the run keeps what it has",
      (name) => {
        const before = JSON.stringify(readRecipe(name, []));
        const counts = { started: 0, taken: 0, refused: 0 };
        for (const overrides of all) {
          const recipe = accepted(name, overrides);
          if (recipe === undefined) continue;
          counts.started++;
          const written = JSON.stringify(recipe);
          expect(resumed(written, overrides), overrides.join(" ")).toBe(written);
          try {
            expect(resumed(before, overrides), overrides.join(" ")).toBe(written);
            counts.taken++;
          } catch (error) {
            if (!(error instanceof OptionsError)) throw error;
            const kept = /, and the save has .*; (take .* again|leave it out), or start a new run$/;
            for (const line of error.lines) expect(line, overrides.join(" ")).toMatch(kept);
            counts.refused++;
          }
        }
        expect(Math.min(...Object.values(counts)), JSON.stringify(counts)).toBeGreaterThan(100);
      },
    );
  });

  describe("of a run that goes on", () => {
    const matrices = "groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";
    const saved = readRecipe("gpt-small", ["steps=30"]);
    const resume = (overrides: string[], text?: string) =>
      resumedRecipe({ step: 30, recipe: saved }, text, overrides, "R");

    it("keeps its data, but may go on although more of it is damaged", () => {
      const pictures = ["data.path=pictures", "data.classes=2", "data.size=32", "data.maxCorrupt=0", "steps=30"];
      const before = readRecipe("resnet18-cifar", ["data.name=image-folder", ...pictures]);
      const resume = (override: string) => resumedRecipe({ step: 30, recipe: before }, undefined, [override], "R");
      expect(resume("data.maxCorrupt=0.5").recipe.data).toEqual({ ...before.data, maxCorrupt: 0.5 });
      expect(() => resume("data.size=64")).toThrow(/^data\.size: 64, and the save has 32: a resumed run keeps it/);
    });

    it("keeps how its gradients are compressed", () => {
      expect(() => resume(["optimizer.name=lion-cub", "exchange.gradient.name=terngrad"])).toThrow(
        'exchange.gradient.name: "terngrad", and the save has "qsgd": a resumed run keeps it; take "qsgd" again, or start a new run',
      );
      const plain = readRecipe("gpt-small", ["steps=30", "optimizer.name=adamw", "exchange.gradient=null"]);
      const given = ["exchange.gradient.name=qsgd"];
      expect(() => resumedRecipe({ step: 30, recipe: plain }, undefined, given, "R")).toThrow(
        /^exchange\.gradient\.name: "qsgd", and the save has none: a resumed run keeps it; leave it out, or start a new run$/,
      );
    });

    it.each([
      [
        "sgd",
        [],
        1,
        "momentum=0.9",
        "optimizer.momentum: 0.9, and the save has 0: the optimizer's state depends on it",
      ],
      ["sgd", ["momentum=0.9"], 1, "momentum=0.5", undefined],
      ["lion-cub", [], 1, "maskEvery=5", "optimizer.maskEvery: 5, and the save has 0: the optimizer's state"],
      ["lion-cub", ["maskEvery=5"], 1, "maskEvery=10", undefined],
      ["dion", [matrices], 1, "rank=8", "optimizer.rank: 8, and the save has 0.25: the optimizer's state"],
      ["dion", [matrices], 1, "momentum=0.9", undefined],
      ["one-bit-adam", ["warmup=4"], 1, "scale=fused", 'optimizer.scale: "fused", and the save has "per-layer"'],
      ["one-bit-adam", ["warmup=4"], 2, "warmup=10", undefined],
      ["one-bit-adam", ["warmup=4"], 2, "warmup=0.1", undefined],
      ["one-bit-adam", ["warmup=4"], 2, "warmup=auto", undefined],
      ["one-bit-adam", ["warmup=4"], 2, "beta2=0.9", undefined],
      ["one-bit-adam", ["warmup=10"], 4, "warmup=3", "4 steps of it have been taken, so 5 is the least; take 10 again"],
      [
        "one-bit-adam",
        ["warmup=4"],
        4,
        "warmup=10",
        "optimizer.warmup: 10, and the save has 4: the warm-up is over; take 4",
      ],
      [
        "one-bit-adam",
        ["warmup=4"],
        4,
        "warmup=auto",
        'optimizer.warmup: "auto", and the save has 4: the warm-up is over',
      ],
      ["one-bit-adam", ["warmup=4"], 4, "beta2=0.9", "it counts in the warm-up, which is over"],
      ["one-bit-adam", [], 4, "beta2=0.9", "it counts in the warm-up, which may be over"],
      ["one-bit-adam", [], 4, "warmup=9", undefined],
      ["one-bit-lamb", ["warmup=4"], 4, "beta2=0.9", undefined],
      ["one-bit-lamb", ["warmup=4"], 4, "maxRatio=1", "optimizer.maxRatio: 1, and the save has none: it counts in"],
      ["zero-one-adam", ["freeze=10"], 4, "freeze=5", undefined],
      [
        "zero-one-adam",
        ["freeze=10"],
        4,
        "freeze=4",
        "the variance was refreshed until step 4, so 5 is the least; take 10",
      ],
      [
        "zero-one-adam",
        ["freeze=4"],
        4,
        "freeze=10",
        "optimizer.freeze: 10, and the save has 4: the variance stays by now",
      ],
      [
        "zero-one-adam",
        ["freeze=4"],
        4,
        "kappa=1",
        "optimizer.kappa: 1, and the save has 16: the variance stays by now",
      ],
      ["zero-one-adam", ["freeze=4"], 4, "doubling=3", undefined],
      ["zero-one-adam", [], 4, "early=buffer", 'optimizer.early: "buffer", and the save has "exact"'],
    ] as const)("of %s with %j refuses after %i steps what comes too late, and nothing else: %s", (...given) => {
      const [name, before, step, change, message] = given;
      const of = (options: readonly string[]) => options.map((option) => `optimizer.${option}`);
      const saved = readRecipe("gpt-small", ["steps=50", `optimizer.name=${name}`, ...of(before)]);
      const resume = () => resumedRecipe({ step, recipe: saved }, undefined, of([change]), "R");
      if (message === undefined) expect(changesOf(saved, resume().recipe)).toHaveLength(1);
      else expect(resume).toThrow(message);
    });

    it.each([
      ["name=dgc", "warmup=4", 4, "exchange.gradient.warmup: 4, and the save has 0: the warm-up is over"],
      [
        "name=powersgd",
        "matrixApproximationRank=4",
        4,
        "exchange.gradient.matrixApproximationRank: 4, and the save has 1: the optimizer's state depends on it",
      ],
      [
        "{ name: powersgd, startPowerSGDIter: 4 }",
        "startPowerSGDIter=9",
        4,
        "startPowerSGDIter: 9, and the save has 4: that step is over",
      ],
      ["{ name: codec, codec: int8 }", "codec=f16", 4, 'exchange.gradient.codec: "f16", and the save has "int8"'],
      ["{ name: codec, codec: l1, bits: 4 }", "bits=3", 4, undefined],
      ["name=terngrad", "scaler=own", 4, 'exchange.gradient.scaler: "own", and the save has "shared"'],
    ] as const)("with exchange.gradient: %s refuses %s after %i steps where it comes too late", (...given) => {
      const [before, change, step, message] = given;
      const gradient = `exchange.gradient${before.startsWith("{") ? `=${before}` : `.${before}`}`;
      const saved = readRecipe("gpt-small", ["steps=50", "optimizer.name=sgd", gradient]);
      const resume = () => resumedRecipe({ step, recipe: saved }, undefined, [`exchange.gradient.${change}`], "R");
      if (message === undefined) expect(changesOf(saved, resume().recipe)).toHaveLength(1);
      else expect(resume).toThrow(message);
    });

    it("has what was overridden before, and says what changes now", () => {
      const once = resume(["steps=60", "optimizer.lr=1e-3"]);
      expect(changesOf(once.before, once.recipe)).toEqual(["steps: 30 → 60", "optimizer.lr: 0.002 → 0.001"]);
      const again = resume(["seed=0"], JSON.stringify(once.recipe));
      expect(again.recipe).toEqual(once.recipe);
      expect(changesOf(again.before, again.recipe)).toEqual([]);
    });

    it("names the file of a recipe that another version has written", () => {
      expect(() => resume([], JSON.stringify({ ...saved, newKey: 1 }))).toThrow(
        /^R\/recipe.json was written by another version of terse, or changed: newKey: unknown option/,
      );
      expect(() => resumedRecipe({ step: 30, recipe: { newKey: 1 } }, undefined, [], "R")).toThrow(
        /^the save of R was written by another version of terse/,
      );
    });

    it("does not have fewer steps than were taken", () => {
      expect(() => resume(["steps=20"])).toThrow(
        "steps: R is saved after step 30, and a run does not go back: give --steps=30",
      );
      expect(resume(["steps=30"]).recipe.steps).toBe(30);
    });

    it("keeps the model of the save, also where recipe.json was edited", () => {
      expect(() => resume(["model.layers=1"])).toThrow(
        /^model\.layers: 1, and the save has none: a resumed run keeps it/,
      );
      const edited = JSON.stringify({ ...saved, model: { ...saved.model, layers: 9999 } });
      expect(() => resume([], edited)).toThrow(/^model\.layers: 9999, and the save has none: a resumed run/);
    });
  });

  it("of apps/train/recipes is found by its name", () => {
    expect(readRecipe("resnet18-cifar", []).model.name).toBe("resnet");
    expect(() => readRecipe("resnet18", [])).toThrow(/recipe resnet18 cannot be read.*one of apps\/train\/recipes/);
    expect(() => readRecipe("gpt-small-lioncub", [])).toThrow(/; did you mean gpt-small-lion-cub\?$/);
    expect(() => readRecipe(file("extends: gpt-small-adam"), [])).toThrow(/; did you mean gpt-small-adamw\?$/);
    expect(() => readRecipe("nowhere", [])).toThrow(/without its \.yaml$/);
  });

  it("that is missing or invalid YAML is named in the error", () => {
    expect(() => readRecipe("nowhere.yaml", [])).toThrow(/nowhere\.yaml cannot be read.*--recipe/);
    expect(() => readRecipe(file("a: [1"), [])).toThrow(/recipe\.yaml/);
  });

  it("that is a pipe or a device is refused", () => {
    expect(() => readRecipe("/dev/zero", [])).toThrow(
      "/dev/zero is a pipe or a device, and every rank reads the recipe",
    );
  });

  it("without a required key is refused, with its name", () => {
    expect(() => readRecipe(file("steps: 3\n"), [])).toThrow(/model: missing/);
  });
});
