import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { gradientCompressions } from "@terse/optimizers";
import { listOptions, parseYaml } from "@terse/options";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { parts } from "../measures/step-parts.ts";
import { readRecipe } from "../recipe.ts";
import { recipeSchema } from "../recipe-schema.ts";
import { resultOf } from "../results/run-result.ts";
import { schedules } from "../schedules/schedules.ts";
import { adviseCommand } from "./advise.ts";
import { compareCommand, tableOf } from "./compare.ts";
import { completionCommand, completionScript, completions } from "./completion.ts";
import { configCommand, explain, sentences } from "./config.ts";
import { jsonSchema } from "./json-schema.ts";

type Tree = Record<string, unknown>;

/** Every value of a recipe with its path; those of lists and groups one by one. */
function leavesOf(value: unknown, path: readonly string[] = []): [path: readonly string[], value: unknown][] {
  if (typeof value !== "object" || value === null) return [[path, value]];
  return Object.entries(value).flatMap(([key, inner]) => leavesOf(inner, [...path, key]));
}

/** A copy with another value at the path. */
function withLeaf(tree: Tree, [key, ...deeper]: readonly string[], value: unknown): Tree {
  const inside = deeper.length === 0 ? value : withLeaf((tree[key!] ?? {}) as Tree, deeper, value);
  return Array.isArray(tree) ? (tree.with(Number(key), inside) as never) : { ...tree, [key!]: inside };
}

/** A value of a type that no key with this value takes. */
const wrongFor = (value: unknown) => (typeof value === "boolean" ? "wrong" : true);

let folder: string;
let printed: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-commands-"));
  printed = "";
  vi.spyOn(process.stdout, "write").mockImplementation((text) => {
    printed += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
  rmSync(folder, { recursive: true, force: true });
});

const keys = [...new Set(listOptions(recipeSchema).map(({ name }) => name))];

describe("config explain", () => {
  it("has one sentence for every key, and none for others", () => {
    expect([...sentences.keys()].sort()).toEqual([...keys].sort());
    for (const sentence of sentences.values()) expect(sentence).toMatch(/^\S.*\.$/);
  });

  it("says what a key means, takes and is by default, for each choice that has it", () => {
    expect(explain("logEvery")).toEqual(["logEvery", `  ${sentences.get("logEvery")}`, "  an integer ≥ 1; default 10"]);
    expect(explain("optimizer.lr")[2]).toBe("  a number > 0; required");
    expect(explain("optimizer.bits").join("\n")).toContain("(optimizer.name=lion-cub)");
    expect(explain("trace").filter((line) => !line.startsWith(" "))).toEqual(["trace.steps", "trace.from"]);
    expect(explain().filter((line) => !line.startsWith(" "))).toEqual(keys);
  });

  it("names the nearest key where there is none", async () => {
    await expect(configCommand(["explain", "logevery"])).rejects.toThrow("did you mean logEvery?");
    expect(() => explain("nonsense")).toThrow(
      /^nonsense: no key of a recipe\. See \.\/terse config explain, which lists all\.$/,
    );
    for (const word of ["lr", "LR", "learning_rate", "learning-rate"])
      expect(() => explain(word)).toThrow("did you mean optimizer.lr?");
    expect(() => explain("batchsize")).toThrow("did you mean data.batchSize?");
    for (const word of ["OPTIMIZER", "optimizer."]) expect(() => explain(word)).toThrow("did you mean optimizer?");
    expect(() => explain("")).toThrow('"": no key of a recipe.');
    await expect(configCommand([])).rejects.toThrow(/^config: the commands are/);
    await expect(configCommand(["explian"])).rejects.toThrow("./terse config explain [KEY]");
  });
});

describe("the JSON Schema", () => {
  type Json = { readonly [key: string]: Json };
  const schema = jsonSchema(recipeSchema, sentences) as unknown as Json;

  it("has every key, with its sentence", () => {
    const found = new Set<string>();
    const walk = (node: Json, path: readonly string[]): void => {
      if (path.length > 0 && node["description"] !== undefined) found.add(path.join("."));
      const reference = node["$ref"] as unknown as string | undefined;
      if (reference !== undefined) walk(schema["$defs"]![reference.slice("#/$defs/".length)]!, path);
      for (const each of [...((node["allOf"] ?? []) as unknown as Json[]), ...(node["then"] ? [node["then"]] : [])])
        walk(each, path);
      for (const [key, value] of Object.entries(node["properties"] ?? {})) walk(value, [...path, key]);
    };
    walk(schema, []);
    for (const key of keys) expect(found).toContain(key);
    expect(schema["properties"]!["steps"]).toEqual({
      description: sentences.get("steps"),
      type: "integer",
      minimum: 1,
    });
    expect(schema["properties"]!["logEvery"]).toMatchObject({ default: 10, type: "integer" });
    expect(schema["properties"]!["precision"]).toMatchObject({ enum: ["f32", "bf16"], default: "f32" });
  });

  const python = process.env["TERSE_PYTHON"] ?? "python3";
  const hasJsonschema = spawnSync(python, ["-c", "import jsonschema"]).status === 0;
  const ifThere = it.skipIf(!hasJsonschema);
  const orWhy = hasJsonschema ? "" : " (skipped: the tests' Python has no jsonschema)";
  /** What Python's jsonschema says of each value: the keys that it names, each with its message. */
  const errorsOf = (values: readonly unknown[]) => {
    const program = `
import json, sys, jsonschema
schema, values = json.load(sys.stdin)
jsonschema.Draft202012Validator.check_schema(schema)
validator = jsonschema.Draft202012Validator(schema)
print(json.dumps([[[".".join(map(str, e.absolute_path)), e.message] for e in validator.iter_errors(x)] for x in values]))`;
    const [input, maxBuffer] = [JSON.stringify([schema, values]), 1e8];
    return JSON.parse(execFileSync(python, ["-c", program], { input, maxBuffer, encoding: "utf8" })) as [
      key: string,
      message: string,
    ][][];
  };
  const check = (values: readonly unknown[]) => errorsOf(values).map((errors) => errors.map(([, message]) => message));

  ifThere(`takes the default recipe and refuses a wrong one, by Python's jsonschema${orWhy}`, () => {
    const recipe = JSON.parse(JSON.stringify(readRecipe("gpt-small", []))) as object;
    const [good, zero, unknown] = check([recipe, { ...recipe, steps: 0 }, { ...recipe, stepz: 1 }]);
    expect(good).toEqual([]);
    expect(zero!.join()).toContain("0 is less than the minimum of 1");
    expect(unknown!.join()).toContain("stepz");
  });

  ifThere(`takes every recipe as it is written, and the documents' example of extends${orWhy}`, () => {
    const folder = new URL("../../recipes/", import.meta.url);
    const recipes = readdirSync(folder).map((name) => parseYaml(readFileSync(new URL(name, folder), "utf8"), name));
    const page = readFileSync(new URL("../../../../docs/recipes.md", import.meta.url), "utf8");
    const [, example] = /```yaml\n(extends: [\s\S]*?)```/.exec(page)!;
    expect(check([...recipes, parseYaml(example!, "docs/recipes.md")]).flat()).toEqual([]);
  });

  ifThere(`reports one wrong value at its key, and nothing else of the recipe${orWhy}`, () => {
    const shipped = readdirSync(new URL("../../recipes/", import.meta.url)).map((name) => basename(name, ".yaml"));
    const given = [
      "optimizer.momentumSync.segments={ role: head }",
      "bucket=auto",
      "save.every=3",
      "device=cuda:1",
      "track={ wandb: offline, mlflow: auto, name: x }",
    ];
    const recipes = [
      ...shipped.map((name) => readRecipe(name, [])), // with every optimizer and every compression of gradients
      readRecipe("gpt-small-muon", ["optimizer.nsCoefficients=[[1, 2, 3], [4, 5, 6]]"]),
      ...Object.keys(schedules).map((name) => readRecipe("gpt-small", [`schedule={ name: ${name} }`])),
      readRecipe("gpt-small-lion-cub", given),
    ].map((recipe) => JSON.parse(JSON.stringify(recipe)) as Tree);
    const wrong = recipes.flatMap((recipe) =>
      leavesOf(recipe).map(([path, value]) => ({ path, recipe: withLeaf(recipe, path, wrongFor(value)) })),
    );
    expect(wrong.length).toBeGreaterThan(1000);
    const errors = errorsOf([...recipes, ...wrong.map(({ recipe }) => recipe)]);
    for (const found of errors.slice(0, recipes.length)) expect(found).toEqual([]);
    for (const [i, { path }] of wrong.entries()) {
      const [first, ...others] = errors[recipes.length + i]!;
      expect(others, path.join(".")).toEqual([]);
      expect(first?.[0], path.join(".")).toBe(path.join("."));
      expect(first![1]).not.toContain("not valid under any of the given schemas");
    }
    const [zero, half] = [0, 1.5].map((warmup) => ({ optimizer: { name: "one-bit-adam", warmup } }));
    expect(errorsOf([zero, half, { optimizer: { name: "lion-cub", momentumSync: { segments: {} } } }])).toEqual([
      [["optimizer.warmup", "0 is less than the minimum of 1"]],
      [["optimizer.warmup", "1.5 is greater than or equal to the maximum of 1"]],
      [["optimizer.momentumSync.segments", expect.any(String)]],
    ]);
  });

  ifThere(`names a key that is not there, in every section, also where another recipe has chosen${orWhy}`, () => {
    const recipe = JSON.parse(
      JSON.stringify(readRecipe("gpt-small", ["optimizer.groups=[{ roles: [head], name: lion }]"])),
    ) as Tree;
    const sections = ["", "model", "data", "optimizer", "optimizer.groups.0", "exchange", "exchange.gradient", "save"];
    const whole = sections.map((section) => withLeaf(recipe, [...section.split("."), "zzz"].filter(Boolean), 1));
    const part = ["optimizer", "exchange.gradient", "schedule"].map((section) => ({
      extends: "gpt-small",
      ...withLeaf({}, [...section.split("."), "zzz"], 1),
    }));
    for (const [i, errors] of errorsOf([...whole, ...part]).entries())
      expect(errors).toEqual([
        [
          [...sections, "optimizer", "exchange.gradient", "schedule"][i],
          expect.stringContaining("'zzz' was unexpected"),
        ],
      ]);
  });

  ifThere(`takes a section without its name only where a recipe is extended${orWhy}`, () => {
    const extending = (own: object) => ({ extends: "gpt-small", ...own });
    const sections = [
      { optimizer: { lr: 0.001, beta1: 0.95 } },
      { exchange: { gradient: { bits: 4 } } },
      { schedule: { shape: "linear" } },
    ];
    const without = { exchange: { gradient: null } };
    const group = { roles: ["norm"], lr: 1 }; // a list replaces the extended one, so each of its entries needs a name
    const good = [
      ...[...sections, without].map(extending),
      without,
      extending({ optimizer: { groups: [{ ...group, name: "lion" }] } }),
      { schedule: { final: 0.2 } }, // of cosine, the default
    ];
    const wrong = [
      ...sections,
      ...[
        { optimizer: { lrr: 1 } },
        { schedule: { name: "linear", shape: "linear" } },
        { optimizer: { groups: [group] } },
      ].map(extending),
    ];
    const messages = check([...good, ...wrong]);
    expect(messages.slice(0, good.length).flat()).toEqual([]);
    for (const found of messages.slice(good.length)) expect(found).not.toEqual([]);
  });
});

describe("extends", () => {
  const write = (name: string, text: string) => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };

  it("changes single keys of a recipe by name or by file, also in a section that names another entry", () => {
    const base = readRecipe("gpt-small-adamw", []);
    write("base.yaml", "extends: gpt-small-adamw\nsteps: 7\noptimizer:\n  lr: 0.125\n");
    const derived = readRecipe(
      write("derived.yaml", "extends: ./base.yaml\nlogEvery: 3\nschedule:\n  name: linear\n"),
      [],
    );
    expect(derived).toEqual({
      ...base,
      steps: 7,
      logEvery: 3,
      optimizer: { ...base.optimizer, lr: 0.125 },
      schedule: readRecipe("gpt-small-adamw", ["schedule.name=linear"]).schedule,
    });
  });

  it("is refused in a circle, and names who extends a recipe that is not there", () => {
    write("a.yaml", "extends: ./b.yaml\n");
    write("b.yaml", "extends: ./a.yaml\n");
    expect(() => readRecipe(join(folder, "a.yaml"), [])).toThrow("a.yaml → b.yaml → a.yaml");
    expect(() => readRecipe(write("c.yaml", "extends: ./none.yaml\n"), [])).toThrow("c.yaml extends it");
  });
});

describe("compare", () => {
  const lines = [
    { step: 0, "val/loss": 5 },
    {
      step: 0,
      "train/loss": 4,
      exposed_fraction: 0.5,
      elapsed_seconds: 2,
      total_bytes: 1000,
      "ranks/compute_seconds": [1, 1],
    },
    {
      step: 9,
      "train/loss": 2,
      exposed_fraction: 0.25,
      elapsed_seconds: 20,
      total_bytes: 10_000,
      "ranks/compute_seconds": [1, 1],
    },
    { step: 10, "val/loss": 2.5 },
  ];

  it("reads what a run has reached from its lines", () => {
    expect(resultOf("a", "lion", lines)).toEqual({
      run: "a",
      method: "lion",
      ranks: 2,
      steps: 10,
      train: 2,
      validation: 2.5,
      best: 2.5,
      stepSeconds: 2,
      exposed: 0.375,
      seconds: 20,
      bytes: 10_000,
    });
    expect(tableOf([resultOf("a", "lion", [])])[1]).toMatch(/^a {4}lion {4} +– +0 +– +– +– +– +– +– +–$/);
  });

  it("takes the names of numbers that JSON has not, and passes over what is no number", () => {
    const of = (...values: unknown[]) =>
      resultOf(
        "a",
        "lion",
        values.map((loss, step) => ({ step, "train/loss": loss })),
      ).train;
    expect([of(2, null), of(2, "NaN"), of(2, "-Infinity")]).toEqual([Number.NaN, Number.NaN, Number.NEGATIVE_INFINITY]);
    expect([of(2, "fast"), of(2, true), of(2, [1]), of(2, {}), of("fast")]).toEqual([2, 2, 2, 2, undefined]);
    const texts = {
      exposed_fraction: "NaN",
      elapsed_seconds: "long",
      total_bytes: null,
      "ranks/compute_seconds": "two",
    };
    const result = resultOf("a", "lion", [
      { step: 0, ...texts, "train/loss": null },
      { step: 3, exposed_fraction: 0.5 },
    ]);
    expect(result).toMatchObject({ steps: 4, train: Number.NaN, exposed: 0.5, seconds: undefined, bytes: undefined });
    expect(tableOf([result])[1]).toMatch(/^a {4}lion {4} +– +4 +NaN +– +– +– +50% +– +–$/);
  });

  it("takes as many lines as a long run has", () => {
    const ended = [
      { step: 9, exposed_fraction: 0, elapsed_seconds: 5 },
      { step: 14, stopped: "stop.target" },
    ];
    expect(resultOf("a", "lion", ended)).toMatchObject({ steps: 14, seconds: 5, stepSeconds: 0.5 });
    const many = Array.from({ length: 300_000 }, (_, step) => ({ step, "train/loss": 1, exposed_fraction: 0 }));
    expect(resultOf("a", "lion", many)).toMatchObject({ steps: 300_000, train: 1 });
  });

  it("prints a row for each run, and how the recipes differ", async () => {
    for (const [name, steps] of [
      ["one", 10],
      ["two", 20],
    ] as const) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "recipe.json"), JSON.stringify(readRecipe("gpt-small", [`steps=${steps}`])));
      const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
      writeFileSync(join(folder, name, "metrics.jsonl"), text);
    }
    await compareCommand([join(folder, "one"), join(folder, "two")]);
    expect(printed).toMatch(
      /^run +method +ranks +steps +loss +validation +best +ms a step +waiting +time +sent\none +adamw, qsgd +2 +10 +2\.0000 +2\.5000 +2\.5000 +2000 +38% +0:20 +10\.0 kB\ntwo /,
    );
    expect(printed).toContain("two, compared with one:\n  steps: 10 → 20\n");

    const sweep = join(folder, "sweep"); // of which no run has begun
    mkdirSync(sweep);
    const plan = { format: 1, recipe: "r", directory: "/", ranks: 1, flags: [], overrides: [], keys: [], runs: [] };
    writeFileSync(join(sweep, "plan.json"), JSON.stringify(plan));
    printed = "";
    await expect(compareCommand([sweep, join(folder, "one")])).rejects.toThrow("has taken a step yet");
    expect(printed).toMatch(/^one +adamw/m);

    mkdirSync(join(folder, "all", "one", "step-2"), { recursive: true });
    writeFileSync(join(folder, "all", "one", "step-2", "manifest.json"), "");
    await expect(compareCommand([join(folder, "all")])).rejects.toThrow(
      /all is no run, and has runs in it: name one of them, such as .*all.one$/,
    );

    const other = join(folder, "elsewhere", "one");
    cpSync(join(folder, "one"), other, { recursive: true });
    await compareCommand([join(folder, "one"), other]);
    expect(printed).toContain(`elsewhere/one, compared with ${basename(folder)}/one: the same recipe\n`);
  });

  it("groups three and more runs by their recipes without the seed, and prints only what differs", async () => {
    const write = (name: string, given: readonly string[], losses: readonly number[], ranks = 2) => {
      const run = join(folder, name);
      mkdirSync(run);
      writeFileSync(join(run, "recipe.json"), JSON.stringify(readRecipe("gpt-small", given)));
      const all = [
        { ...lines[1]!, "ranks/compute_seconds": Array(ranks).fill(1) },
        ...losses.map((loss, i) => ({ step: 10 * i, "val/loss": loss })),
      ];
      writeFileSync(join(run, "metrics.jsonl"), all.map((line) => `${JSON.stringify(line)}\n`).join(""));
      return run;
    };
    const runs = [
      write("a", ["seed=0"], [5, 1, 2]),
      write("b", ["seed=1", "optimizer.lr=0.5"], [5, 4]),
      write("c", ["seed=1"], [5, 4]),
      write("d", ["seed=2"], [5, 5.5, 6]),
      write("e", ["seed=3"], [7], 4),
    ];
    await compareCommand(runs);
    const [head, ...rest] = printed.trimEnd().split("\n");
    expect(head).toMatch(/^ +method +runs +ranks +steps +loss +validation +best +ms a step +waiting +time +sent$/);
    // numpy.std([2, 4, 6], ddof=1) is 2, of [1, 4, 5.5] 2.2913
    expect(rest[0]).toMatch(/^A {2}adamw, qsgd +3 +2 +1 +4\.0000 ± 0\.0000 +4\.0000 ± 2\.0000 +3\.5000 ± 2\.2913 /);
    expect(rest[1]).toMatch(/^B {2}adamw, qsgd +1 +2 +1 +4\.0000 +4\.0000 +4\.0000 /);
    expect(rest[2]).toMatch(/^C {2}adamw, qsgd +1 +4 +1 +4\.0000 +7\.0000 /);
    const { lr } = readRecipe("gpt-small", []).optimizer;
    expect(rest.slice(3)).toEqual([
      "A: a, c, d",
      `  optimizer.lr=${lr}`,
      "B: b",
      "  optimizer.lr=0.5",
      "C: e",
      `  optimizer.lr=${lr}`,
    ]);

    printed = "";
    await compareCommand([...runs.slice(2), write("again", ["seed=1"], [5, 4])]);
    expect(printed).toContain("\nA: c, d, again\n  the same seed, so ± is too small: c, again\nB: e");

    printed = "";
    await compareCommand([...runs, "--json"]);
    const found = JSON.parse(printed) as Tree[];
    expect(found.map(({ runs }) => runs)).toEqual([["a", "c", "d"], ["b"], ["e"]]);
    expect(found[0]).toMatchObject({
      run: "a, c, d",
      seeds: [0, 1, 2],
      validation: 4,
      deviations: { validation: 2 },
      bytes: 1000,
      differs: { "optimizer.lr": lr },
    });
  });

  it("takes a sweep for its runs that have begun", async () => {
    const run = (name: string, seed: number) => ({ name, seed, values: {} });
    const plan = { format: 1, recipe: "x", directory: "/", ranks: 1, flags: [], overrides: [], keys: [] };
    const runs = [run("seed-0", 0), run("seed-1", 1), run("seed-2", 2), run("seed-3", 3)];
    writeFileSync(join(folder, "plan.json"), JSON.stringify({ ...plan, runs }));
    await expect(compareCommand([folder])).rejects.toThrow("has taken a step yet");
    for (const { name, seed } of runs.slice(0, 3)) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "recipe.json"), JSON.stringify(readRecipe("gpt-small", [`seed=${seed}`])));
      writeFileSync(join(folder, name, "metrics.jsonl"), `${JSON.stringify(lines[3])}\n`);
    }
    await compareCommand([folder]);
    expect(printed).toMatch(/^A {2}adamw, qsgd +3 +– +0 +– +2\.5000 ± 0\.0000 /m);
    expect(printed).toContain("\nA: seed-0, seed-1, seed-2\n");
  });

  it("shows the runs that it can read, with a line about each that it cannot, and one about a line that was cut short", async () => {
    const [good, old] = [join(folder, "good"), join(folder, "old")];
    const recipe = readRecipe("gpt-small", []);
    for (const [run, own] of [
      [good, recipe],
      [old, { ...recipe, newKey: 1 }],
    ] as const) {
      mkdirSync(run);
      writeFileSync(join(run, "recipe.json"), JSON.stringify(own));
      writeFileSync(join(run, "metrics.jsonl"), `${JSON.stringify(lines[1])}\n{"step":1,"train/lo`);
    }
    let said = "";
    vi.spyOn(process.stderr, "write").mockImplementation((text) => {
      said += text;
      return true;
    });
    await expect(compareCommand([good, old, "--json"])).rejects.toThrow(
      /old\/recipe\.json was written by another version of terse, or changed: newKey: unknown option/,
    );
    expect((JSON.parse(printed) as { run: string }[]).map(({ run }) => run)).toEqual(["good"]);
    expect(said).toBe(`${good}/metrics.jsonl: the last line is cut short, and is left out\n`);
    writeFileSync(join(good, "metrics.jsonl"), '{"step":1,"train/lo');
    await expect(adviseCommand([good])).rejects.toThrow(
      /good has no measured steps: .*metrics\.jsonl: the last line is cut short, and is left out$/,
    );
  });

  it("gives the terminal no command of a run's name or recipe", async () => {
    const names = ["a\u001b[2J\u202eb\nresume: rm", "other"];
    for (const [i, name] of names.entries()) {
      mkdirSync(join(folder, name));
      const given = [`data.path=${JSON.stringify(`x\u009b2J\u001b]0;t\u0007${i}`)}`];
      writeFileSync(join(folder, name, "recipe.json"), JSON.stringify(readRecipe("gpt-small", given)));
      writeFileSync(join(folder, name, "metrics.jsonl"), "");
    }
    await compareCommand(names.map((name) => join(folder, name)));
    expect(printed).toMatch(/^a·\[2J·b·resume: rm +adamw/m);
    expect(printed).toContain("other, compared with a·[2J·b·resume: rm:");
    expect(printed).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
  });

  it("says in a line that a folder is no run", async () => {
    await expect(compareCommand([folder])).rejects.toThrow(/has no recipe.json: name the folder of a run/);
    const run = join(folder, "whole");
    mkdirSync(join(run, "step-10"), { recursive: true });
    writeFileSync(join(run, "recipe.json"), JSON.stringify(readRecipe("gpt-small", [])));
    writeFileSync(join(run, "step-10", "manifest.json"), "{}");
    for (const part of ["step-10", "step-20", "best", "average", "step-10/average"])
      await expect(compareCommand([join(run, part)])).rejects.toThrow(
        `${part} is a part of a run: name the run, ${run}`,
      );
    const other = join(folder, "of-another-version");
    mkdirSync(other);
    writeFileSync(join(other, "recipe.json"), JSON.stringify({ ...readRecipe("gpt-small", []), newKey: 1 }));
    const said =
      /of-another-version\/recipe.json was written by another version of terse, or changed: newKey: unknown option/;
    await expect(compareCommand([other])).rejects.toThrow(said);
    await expect(adviseCommand([other])).rejects.toThrow(said);
    writeFileSync(join(other, "recipe.json"), '{ "steps": ');
    await expect(adviseCommand([other])).rejects.toThrow(
      /recipe\.json: not valid YAML: [^\n]*\. Restore it, or name another run\.$/,
    );
    await expect(adviseCommand([""])).rejects.toThrow(/^"" has no recipe\.json/);
    await expect(compareCommand([])).rejects.toThrow("compare needs the folders of runs");
  });
});

describe("advise", () => {
  const runOf = (ranks: number) => {
    const run = join(folder, `of-${ranks}`);
    mkdirSync(run);
    writeFileSync(join(run, "recipe.json"), JSON.stringify(readRecipe("gpt-small", ["steps=20"])));
    const line = {
      step: 0,
      step_seconds: 0.1,
      "ranks/compute_seconds": Array(ranks).fill(0.1),
      sent_bytes: 0,
      ...Object.fromEntries([...parts, "exposed"].map((part) => [`time/${part}`, 0.01])),
    };
    writeFileSync(join(run, "metrics.jsonl"), `${JSON.stringify(line)}\n`);
    return run;
  };

  it("has none for a run of one rank, with a link or without", async () => {
    const run = runOf(1);
    for (const argv of [[run], [run, "--link", "1gbit,50us"]])
      await expect(adviseCommand(argv)).rejects.toThrow(
        `${run} had one rank, which sends nothing; train with --nproc-per-node 2 or more, or plan with ./terse train --dry-run --world-size N --link LINK`,
      );
    const message = await adviseCommand([runOf(2)]).catch((error: Error) => error.message);
    expect(message).toMatch(
      /has not measured its network, because it had fewer than 50 steps, or advise: false; give a link, such as --link 1gbit,50us$/,
    );
  });
});

describe("advise on a warm-up", () => {
  it("is given for a run of one rank too, in words and as JSON", async () => {
    const run = join(folder, "of-layers");
    mkdirSync(run);
    writeFileSync(join(run, "recipe.json"), JSON.stringify(readRecipe("gpt-small-lamb", ["steps=40"])));
    const line = (step: number) => ({
      step,
      step_seconds: 0.1,
      "ranks/compute_seconds": [0.1],
      sent_bytes: 0,
      ...Object.fromEntries([...parts, "exposed"].map((part) => [`time/${part}`, 0.01])),
      "layers/names": ["norm.weight"],
      "layers/ratios": [step < 10 ? 0.1 : 0.3],
    });
    writeFileSync(
      join(run, "metrics.jsonl"),
      [0, 10, 20, 30].map((step) => `${JSON.stringify(line(step))}\n`).join(""),
    );
    await adviseCommand([run]);
    expect(printed).toBe(
      "the trust ratio of 1 of 1 layers changed by less than 10% over the last third of the run; a warm-up of about 11 steps would have held\n",
    );
    printed = "";
    await adviseCommand([run, "--json"]);
    expect(JSON.parse(printed)).toEqual({
      settled: [{ what: "the trust ratio", layers: 1, settled: 1, moving: [], warmup: 11 }],
    });
  });
});

describe("shell completion", () => {
  it("names the shells where it is given none, an unknown one, or two", async () => {
    const shells = "name one of the shells bash, zsh, fish: source <(./terse completion bash)";
    for (const words of [[], ["powershell"], ["bash", "zsh"]])
      await expect(completionCommand(words)).rejects.toThrow(`${["completion", ...words].join(" ")}: ${shells}`);
  });

  const has = (shell: string) => spawnSync(shell, ["-c", "true"]).status === 0;
  const runIn = (shell: string, program: string) => {
    const { stdout, stderr } = spawnSync(shell, ["-c", program], { encoding: "utf8" });
    expect(stderr).toBe("");
    return stdout.trimEnd().split("\n");
  };

  it("knows every command of the help, and the flags, keys and plain words of each", () => {
    const all = completions();
    expect([...all.keys()]).toEqual(
      expect.arrayContaining(["train", "advise", "compare", "export", "config", "completion", "bench"]),
    );
    const flags = (command: string) => all.get(command)!.flags.map(({ name }) => name);
    expect(flags("train")).toEqual(expect.arrayContaining(["recipe", "trace", "dashboard", ...keys]));
    expect(flags("sweep")).toEqual(expect.arrayContaining(["seeds", "jobs", "resume", "init-from", ...keys]));
    expect(flags("advise")).toEqual(["link", "json"]);
    expect(flags("export")).toContain("out");
    expect(flags("cost")).toEqual(expect.arrayContaining(["alpha", "beta"]));
    expect(all.get("train")!.flags.filter(({ name }) => ["trace", "steps"].includes(name))).toEqual([
      { name: "trace", takes: false },
      { name: "steps", takes: true },
    ]);
    const names = readdirSync(new URL("../../recipes", import.meta.url)).map((name) => name.replace(".yaml", ""));
    expect([...all.get("train")!.words].sort()).toEqual(names.sort());
    for (const [command, { values }] of all)
      for (const [flag, choices] of values) {
        if (flag.startsWith("--")) expect(flags(command), flag).toContain(flag.slice(2));
        for (const choice of choices) expect(choice, flag).toMatch(/^[\w.-]+$/);
      }
  });

  // What the user has typed, cut as bash cuts it, and some of what it may complete.
  const cases: [typed: string[], some: string[]][] = [
    [["comp"], ["compare", "completion"]],
    [["train", "gpt-small-lion-c"], ["gpt-small-lion-cub"]],
    [["train", "--recipe", "gpt-small-adam"], ["gpt-small-adamw"]],
    [
      ["train", "--optimizer.l"],
      ["--optimizer.lr", "--optimizer.localSteps"],
    ],
    [
      ["train", "--optimizer.name", "=", "lion"],
      ["lion", "lion-cub"],
    ],
    [
      ["train", "--optimizer.name", "lion"],
      ["lion", "lion-cub"],
    ],
    [["train", "--exchange.gradient.name", "="], Object.keys(gradientCompressions)],
    [["train", "--advise", "=", "f"], ["false"]],
    [["train", "--engine", "t"], ["tcp"]],
    [["train", "--steps", "=", ""], []],
    [
      ["advise", "--"],
      ["--link", "--json"],
    ],
    [["compare", "--"], ["--json"]],
    [["export", "--ou"], ["--out"]],
    [["page", "--"], ["--address"]],
    [
      ["bench", "co"],
      ["codecs", "collectives", "convergence", "cost-model"],
    ],
    [
      ["bench", "--"],
      ["--settings", "--json", "--svg", "--record", "--from", "--data"],
    ],
    [
      ["config", ""],
      ["explain", "schema"],
    ],
    [["config", "explain", "logE"], ["logEvery"]],
    [
      ["completion", ""],
      ["bash", "zsh", "fish"],
    ],
    [["compare", "ru"], []], // and bash goes on with files
  ];

  const joined = (typed: string[]) => typed.join(" ").replace(/ = ?/, "=");
  const keyOf = (typed: string[]) => (typed.includes("=") ? `${typed[typed.indexOf("=") - 1]}=` : "");

  it("completes in bash, whose words end at each equals sign", () => {
    const calls = cases.map(
      ([typed]) =>
        `COMP_WORDS=(terse ${typed.map((word) => `'${word}'`).join(" ")}) COMP_CWORD=${typed.length}; _terse; echo "\${COMPREPLY[@]}"`,
    );
    // As zsh has it.
    const whole = `COMP_WORDS=(terse train --optimizer.name=lion) COMP_CWORD=2; _terse; echo "\${COMPREPLY[@]}"`;
    const lines = runIn("bash", [completionScript("bash"), ...calls, whole].join("\n"));
    expect(lines.at(-1)).toBe("--optimizer.name=lion --optimizer.name=lion-cub");
    for (const [i, [typed, expected]] of cases.entries())
      expect(
        lines[i]!.split(" ").filter((word) => word !== ""),
        typed.join(" "),
      ).toEqual(expected);
  });

  const zsh = has("zsh");
  it.skipIf(!zsh)(`completes in zsh, whose words keep it${zsh ? "" : " (skipped: zsh is not installed)"}`, () => {
    const calls = cases.map(([typed]) => {
      const words = joined(typed).split(" ");
      return `COMP_WORDS=(terse ${words.map((word) => `'${word}'`).join(" ")}) COMP_CWORD=${words.length}; _terse; echo "\${COMPREPLY[@]}"`;
    });
    const emulated = "emulate sh"; // as bashcompinit calls it
    const lines = runIn("zsh", [completionScript("zsh"), emulated, ...calls, "echo end"].join("\n"));
    for (const [i, [typed, expected]] of cases.entries()) {
      // zsh takes those of the function's words that begin with the typed one.
      const found = lines[i]!.split(" ").filter(
        (word) => word !== "" && word.startsWith(joined(typed).split(" ").at(-1)!),
      );
      expect(found, joined(typed)).toEqual(expected.map((word) => `${keyOf(typed)}${word}`));
    }
  });

  const fish = has("fish");
  it.skipIf(!fish)(`completes in fish${fish ? "" : " (skipped: fish is not installed)"}`, () => {
    const file = join(folder, "completion.fish");
    writeFileSync(file, completionScript("fish"));
    const calls = cases.map(([typed]) => `complete -C 'terse ${joined(typed)}'; echo .`);
    const found = runIn("fish", [`source '${file}'`, `cd '${folder}'`, ...calls].join("\n"))
      .join("\n")
      .split(/^\.$/m);
    for (const [i, [typed, expected]] of cases.entries())
      for (const word of expected) expect(found[i]!.split("\n"), joined(typed)).toContain(`${keyOf(typed)}${word}`);
  });
});

it("every command of the help of commands is one of ./terse", () => {
  const own = [...readFileSync(new URL("help.txt", import.meta.url), "utf8").matchAll(/^ {2}\.\/terse ([a-z]+)/gm)];
  for (const [, name] of own) expect([...completions().keys()]).toContain(name);
});
