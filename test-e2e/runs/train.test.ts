import { cpSync, mkdirSync, readdirSync, readFileSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { crc32, deflateSync } from "node:zlib";
import { beforeAll, describe, expect, it } from "vitest";
import { isRunning } from "../../tools/testing/is-running.ts";
import { children, type Outcome, terseIn, tinyTraining, trainingFolder, until } from "./terse.ts";

const { folder, text } = trainingFolder("runs");
const terse = (...args: [args: readonly string[], during?: (line: string, pid: number) => void]) =>
  terseIn(folder, ...args);
const train = (...args: string[]) => [...tinyTraining(text), ...args];

/** The step of the newest save of a run. */
const lastSave = (run: string) =>
  Math.max(...readdirSync(run).flatMap((name) => (name.startsWith("step-") ? [Number(name.slice(5))] : [])));

describe("./terse train", () => {
  const run = join(folder, "run");
  let first: Outcome;
  beforeAll(async () => {
    const oneBit = ["--optimizer.momentumSync.segments=none", "--optimizer.lr=3e-3"];
    first = await terse(train("--steps=30", ...oneBit, "--out", run));
  });

  it("learns on two processes, and prints the bytes sent and the folder of its files", () => {
    expect(first.err).toBe("");
    expect(first.code).toBe(0);
    const losses = [...first.out.matchAll(/validation_loss: ([\d.]+)/g)].map((match) => Number(match[1]));
    expect(losses[0]).toBeGreaterThan(5);
    expect(losses.at(-1)).toBeLessThan(3.5);
    expect(first.out).toMatch(/2 ranks over tcp/);
    expect(first.out).toMatch(/sent per step: .* a rank; gradients in 32 bits would be .* \((2|3)\d\.\d ×\)/);
    expect(first.out).toContain(run);
  });

  it("writes a run folder with a line of metrics for each logged step, and no incomplete file", () => {
    expect(readdirSync(run).sort()).toEqual(["metrics.jsonl", "recipe.json", "step-30"]);
    expect(readdirSync(join(run, "step-30")).sort()).toEqual([
      "config.json",
      "manifest.json",
      "model.safetensors",
      "state-rank-0.safetensors",
      "state-rank-1.safetensors",
    ]);
    const metrics = readFileSync(join(run, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, number>);
    expect(metrics.filter((line) => "train/loss" in line)).toHaveLength(30);
    // The vote, and the norms that clip the next one
    expect(metrics.find((line) => "train/loss" in line)).toMatchObject({ messages: 2 });
  });

  it("samples the same text for the same seed", async () => {
    const [once, again] = [
      await terse(["sample", run, "--prompt", "the ", "--bytes", "30"]),
      await terse(["sample", run, "--prompt", "the ", "--bytes", "30"]),
    ];
    expect(once.code).toBe(0);
    expect(once.out).toMatch(/^the /);
    expect(again.out).toBe(once.out);
  });

  // At every save a mean is on the wire. Without overlap and with it, in bf16 too, the bits are the same. The saves of
  // every optimizer are tested in one process (optimizer-contract.ts), and 1-bit LAMB's with ranks that are killed
  // (recovery.test.ts).
  it("resumes a save of lion-cub after its launcher was killed, and ends with the weights of an uninterrupted run", async () => {
    const sync = "--optimizer.momentumSync={segments: all, every: 2, late: true}";
    const more = ["--optimizer.name=lion-cub", sync, "--precision=bf16", "--overlap=off"];
    const [half, whole] = [join(folder, "half lion-cub"), join(folder, "whole-lion-cub")];
    const common = ["--steps=16", "--accumulate=2", "--save.every=4", ...more];
    const once = await terse(train(...common, "--overlap=auto", "--out", whole));
    expect([once.code, once.err]).toEqual([0, ""]);
    expect(once.out).toContain("while backward still runs");
    let ranks: string[] = [];
    const slowly = "--emulate-link=1gbit,20ms"; // so that it does not end before the kill
    const broken = await terse(train(...common, slowly, "--out", half), (line, pid) => {
      if (!/step: ([6-9]|1[0-5])\/16/.test(line) || lastSave(half) < 4) return;
      ranks = children(pid);
      process.kill(pid, "SIGKILL");
    });
    expect(broken.signal).toBe("SIGKILL");
    await until(() => !ranks.some(isRunning)); // no rank is left
    const step = lastSave(half);
    expect(step).toBeGreaterThanOrEqual(4);
    expect(step).toBeLessThan(16);
    const resumed = await terse(["train", "--resume", half]);
    expect(resumed.err).toBe("");
    const weights = (run: string) => readFileSync(join(run, "step-16", "model.safetensors"));
    expect(weights(half).equals(weights(whole))).toBe(true);
    expect(
      new Set(
        weights(whole)
          .toString("latin1")
          .match(/"dtype":"\w+"/g),
      ),
    ).toEqual(new Set(['"dtype":"F32"']));
    const losses = [...once.out.matchAll(/validation_loss: ([\d.]+)/g)].map((match) => Number(match[1]));
    expect(losses.at(-1)).toBeLessThan(losses[0]!);
    const steps = readFileSync(join(half, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, number>)
      .filter((line) => "train/loss" in line)
      .map((line) => line["step"]);
    expect(steps).toEqual(Array.from({ length: 16 }, (_, i) => i));
  });

  it("refuses to resume with another model, other data or another optimizer", async () => {
    const { code, err } = await terse(["train", "--resume", run, "--optimizer.name=lion", "--data.batchSize=8"]);
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/data\.batchSize: 8, and the save has \d+: a resumed run keeps it/);
    expect(err).toMatch(/optimizer\.name: "lion", and the save has "lion-cub": a resumed run keeps it/);
  });

  it("plans a run without training: --dry-run prints its cost on any number of ranks, and leaves no folder", async () => {
    const before = readdirSync(folder);
    const given = ["--dry-run", "--world-size=64", "--link=1gbit,50us", "--model.preset=124M", "--steps=100"];
    const { code, err, out: said } = await terse(["train", "gpt-small-one-bit-lamb", ...given]);
    expect(code, err).toBe(0);
    expect(said).toMatch(
      /^dry run: one-bit-lamb on 64 ranks, a link of 1gbit,50us each\nmodel gpt, 124\.\d+ M parameters/,
    );
    expect(said).toMatch(/^ {2}steps 0 to 19 +[\d.]+ MB$/m);
    expect(said).toMatch(/^ {2}steps 20 to 99 +[\d.]+ MB$/m);
    expect(said).toMatch(/^time of a step, predicted: .* measured here$/m);
    expect(readdirSync(folder)).toEqual(before);
    const nowhere = await terse(["train", ...given, "--data", "nowhere"]);
    expect(nowhere).toMatchObject({ code: 1, out: "" });
    expect(nowhere.err).toMatch(/^error: data\.path: there is no file or folder at nowhere on this machine.*\n$/);
    const ofRecipe = await terse(["train", "bert-large-one-bit-lamb", "--dry-run"]);
    expect(ofRecipe.code, ofRecipe.err).toBe(0);
    expect(ofRecipe.out).toMatch(
      /\ndata\.path: there is no file or folder at corpus on this machine; a run needs it\n$/,
    );
    const refused = await terse(["train", ...given, "--optimizer.groups=[{ roles: [norms], name: lion }]"]);
    expect(refused).toMatchObject({ code: 1, out: "" });
    expect(refused.err).toMatch(/^error: optimizer\.groups\.0\.roles\.0: .*did you mean norm\?\n$/);
  });

  it("names the emulated link with every time, chooses by its measured cost, prints why, and writes it", async () => {
    const out = join(folder, "measured");
    const chosen = ["--exchange.vote=auto", "--bucket=auto", "--optimizer.clip=0", "--emulate-link=1gbit,100us"];
    const { code, out: said, err } = await terse(train("--steps=7", ...chosen, "--out", out));
    expect(code, err).toBe(0);
    expect(said).toContain("2 ranks over tcp; the link is emulated, 1gbit,100us");
    expect(said).toMatch(/^time: .+ on an emulated link, 1gbit,100us$/m);
    expect(first.out).not.toContain("emulated");
    const why = /a vote of \d+ elements among 2 ranks \(α .+ should take: .+; .+; a mean in f32 .+/;
    expect(said).toMatch(new RegExp(`votes are counted by [a-z-]+: ${why.source}`));
    expect(said).toMatch(/from now on \d+ buckets? of \d+ parameters: backward takes .+ should be left to wait for/);
    const metrics = readFileSync(join(out, "metrics.jsonl"), "utf8").trim().split("\n");
    const lines = metrics.map((line) => JSON.parse(line) as Record<string, unknown>);
    const emulated = lines.filter((line) => "step_seconds" in line).map((line) => line["emulated_link"]);
    expect(emulated).toEqual(Array(7).fill("1gbit,100us"));
    const votes = lines.filter((line) => "exchange/vote" in line);
    // Once, and again where new buckets have made the longest vote longer.
    expect(votes.map(({ step }) => step).join()).toMatch(/^0(,[3-6])?$/);
    for (const vote of votes) expect(vote["exchange/why"]).toMatch(why);
    expect(lines.filter((line) => "bucketing" in line).map(({ step }) => step)).toEqual([3]);
  });

  it("trains on one process without validation data", async () => {
    const out = join(folder, "one-process");
    const args = ["--steps=4", "--nproc-per-node=1", "--data.validationFraction=0", "--out", out];
    const { code, out: said, err } = await terse(train(...args));
    expect([code, err]).toEqual([0, ""]);
    expect(said).not.toMatch(/NaN|validation/);
    expect(said).toMatch(/sent per step: nothing: one rank/);
  });

  /** The weights after four steps, and the bytes that a rank has sent in each, as printed. */
  async function afterFour(name: string, overlap: "on" | "off", ...more: string[]) {
    const out = join(folder, name);
    const buckets = ["--bucket=20000", "--optimizer.clipBy=bucket", "--accumulate=2", "--compareEvery=1"];
    const args = ["--steps=4", "--data.validationFraction=0", ...buckets, `--overlap=${overlap}`, ...more];
    const { code, err, out: said } = await terse(train(...args, "--out", out));
    expect([code, err]).toEqual([0, ""]);
    expect(said).not.toMatch(/NaN|validation/);
    expect(said).toContain(overlap === "on" ? "while backward still runs" : "after backward (overlap is off)");
    const [, sent] = /sent per step: (\S+ \S+) a rank/.exec(said)!;
    return { weights: readFileSync(join(out, "step-4", "model.safetensors")).toString("base64"), sent };
  }

  // Votes here and means below; every optimizer is tested in one process (overlap.test.ts).
  it("gives the same weights with every vote scheme, with and without overlap, and prints the bytes sent", async () => {
    const three = ["--optimizer.name=lion-cub", "--nproc-per-node=3"];
    const standard = await afterFour("all-to-all", "on", ...three, "--exchange.vote=all-to-all");
    for (const [vote, overlap] of [
      ["count", "off"],
      ["parameter-server", "on"],
    ] as const) {
      const { weights, sent } = await afterFour(vote, overlap, ...three, `--exchange.vote=${vote}`);
      expect(weights).toBe(standard.weights);
      expect(sent).not.toBe(standard.sent);
    }
  });

  it("gives the same weights for the same seed, with and without overlap, and others for another seed", async () => {
    const means = "--optimizer.name=lion";
    const a = await afterFour("seed-1", "on", means, "--seed=1");
    const b = await afterFour("seed-1-again", "off", means, "--seed=1");
    const c = await afterFour("seed-2", "off", means, "--seed=2");
    expect(b).toEqual(a);
    expect(c.weights).not.toBe(a.weights);
  });
});

it("counts the pictures that no rank could decode, and those alone", async () => {
  const chunk = (kind: string, data: Uint8Array) => {
    const content = Buffer.concat([Buffer.from(kind), data]);
    const [length, crc] = [Buffer.alloc(4), Buffer.alloc(4)];
    length.writeUInt32BE(data.length);
    crc.writeUInt32BE(crc32(content));
    return Buffer.concat([length, content, crc]);
  };
  const size = 8;
  const rows = deflateSync(Uint8Array.from({ length: size * (1 + 3 * size) }, (_, i) => (i % 25 === 0 ? 0 : i * 37)));
  const header = chunk("IHDR", Uint8Array.of(0, 0, 0, size, 0, 0, 0, size, 8, 2, 0, 0, 0));
  const begin = Buffer.concat([Buffer.from("\x89PNG\r\n\x1a\n", "latin1"), header]);
  const [whole, damaged] = [rows, rows.subarray(0, 40)].map((data) =>
    Buffer.concat([begin, chunk("IDAT", data), chunk("IEND", Buffer.of())]),
  ) as [Buffer, Buffer];
  for (const name of ["cat", "dog"]) {
    mkdirSync(join(folder, "pictures", "train", name), { recursive: true });
    for (let i = 0; i < 8; i++)
      writeFileSync(join(folder, "pictures", "train", name, `${i}.png`), i < 2 ? damaged : whole);
  }
  const data = ["--data.name=image-folder", "--data=pictures", "--data.size=8", "--data.maxCorrupt=0.5"];
  const model = ["--recipe=resnet18-cifar", "--model.width=4", "--data.batchSize=4", "--evaluate.every=0"];
  const skippedBy = (run: string) => {
    const lines = readFileSync(join(folder, run, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    return lines.map((line) => JSON.parse(line)).filter((line) => "skipped" in line);
  };
  const line = /^skipped: 4 images could not be decoded: train\/cat\/0\.png \(vipspng: libpng read error\), .*, …$/m;

  const ended = await terse(["train", ...model, ...data, "--steps=9", "--out", join(folder, "with-pictures")]);
  expect([ended.code, ended.err]).toEqual([0, ""]);
  expect(ended.out).toMatch(line);
  expect(skippedBy("with-pictures")).toEqual([{ step: 9, skipped: 4 }]);

  // A run that a signal ends
  let sent = false;
  const out = join(folder, "with-pictures-stopped");
  const stopped = await terse(["train", ...model, ...data, "--steps=100000", "--out", out], (printed, pid) => {
    if (sent || !/^step: \d\d\//.test(printed)) return;
    sent = true;
    process.kill(pid, "SIGTERM");
  });
  expect(stopped.code).toBe(143);
  expect(stopped.out).toMatch(line);
  expect(skippedBy("with-pictures-stopped")).toMatchObject([{ stopped: "SIGTERM", skipped: 4 }]);
});

describe("./terse train ends with one line about", () => {
  const cases: [string, string[], RegExp][] = [
    ["a data path that is missing", ["--data", "nowhere"], /no file or folder at nowhere/],
    ["an unknown optimizer", ["--optimizer.name=lion-cup"], /lion-cup/],
    [
      "a chunk that is not a whole number of words",
      ["--exchange.chunk=100"],
      /chunk is 100, and must be a multiple of 64 elements; take 128/,
    ],
    ["an unknown flag", ["--optimiser.lr=1e-3"], /--optimiser\.lr: unknown flag; did you mean --optimizer\.lr\?/],
    ["a model that does not exist", ["--model.name=gtp"], /model\.name: .*"gtp"; did you mean gpt\?/],
    ["an unknown key", ["--optimizer.beta11=0.9"], /did you mean beta1/],
    ["a text shorter than one block", ["--data", "short.txt"], /short\.txt.*block/],
    ["an empty text", ["--data", "empty.txt"], /empty\.txt/],
    ["an output folder that cannot be created", ["--out", "text.txt/run"], /text\.txt/],
    ["an output folder that is not empty", ["--out", "."], /is not empty.*--out/],
    [
      "overlap with an algorithm that does not allow it",
      ["--overlap=on", "--optimizer.clipBy=global"],
      /global norm .* set clipBy to previous or bucket, or clip to 0/,
    ],
  ];
  beforeAll(() => {
    writeFileSync(join(folder, "short.txt"), "too short");
    writeFileSync(join(folder, "empty.txt"), "");
  });

  it.each([
    ...cases.map(([what, args, message], i) => {
      // Two ranks say it once; what the first cases show of that holds for all.
      const ranks = i < 3 ? 2 : 1;
      return [what, train("--steps=2", `--nproc-per-node=${ranks}`, ...args), message] as const;
    }),
    ["a folder to resume without a run", ["train", "--resume", "nowhere"], /nowhere/] as const,
  ])("%s", async (_, args, message) => {
    const { code, err } = await terse(args);
    expect(code).toBeGreaterThan(0);
    const errors = err
      .trim()
      .split("\n")
      .filter((line) => line.startsWith("error: "));
    expect(errors).toHaveLength(1);
    expect(errors[0]).toMatch(message);
    expect(err).not.toMatch(/^\s+at /m);
  });

  it("a busy port", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { code, err } = await terse(train("--steps=2", "--rdzv-endpoint", `127.0.0.1:${port}`));
    server.close();
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(new RegExp(`^error: .*${port}.*`, "m"));
  });

  it("a loss that is not finite: no rank applies the step", async () => {
    const out = join(folder, "nan");
    const { code, err } = await terse(
      train("--steps=20", "--optimizer.lr=1e30", "--optimizer.clip=0", "--schedule.warmup=0", "--out", out),
    );
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/^error: .*not finite.*No rank has changed its parameters/m);
    expect(readdirSync(out).sort()).toEqual(["metrics.jsonl", "recipe.json"]); // no save
  });

  it("data that one rank finds to be wrong in the middle of the run", async () => {
    const tokens = Uint16Array.from({ length: 140_000 }, (_, i) => (i > 70_000 && i % 4_000 === 0 ? 999 : i % 200));
    writeFileSync(join(folder, "wrong.bin"), tokens);
    const data = ["--data.name=tokens", "--data=wrong.bin", "--data.vocabulary=256", "--data.validationFraction=0"];
    const long = "--deadline=3600"; // what waits for the other rank until then ends only with the test
    const { code, err } = await terse(
      train("--steps=200", ...data, long, "--save.every=3", "--out", join(folder, "wrong")),
    );
    expect(code).toBe(1);
    expect(err).toMatch(
      /^error: rank [01] on \S+: \S*wrong\.bin: token \d+000 is 999, and the vocabulary has 256 tokens.*\n(resume: .*\n)?$/,
    );
  });

  it("a checkpoint that is cut short, or that names a file outside of its folder", async () => {
    const out = join(folder, "cut");
    cpSync(join(folder, "run"), out, { recursive: true });
    truncateSync(join(out, "step-30", "model.safetensors"), 10_000);
    const { code, err } = await terse(["sample", out]);
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/^error: .*model\.safetensors has 10000 bytes, and \d+ were saved/m);
    const path = join(out, "step-30", "manifest.json");
    writeFileSync(path, readFileSync(path, "utf8").replace("model.safetensors", "../../elsewhere"));
    const { err: outside } = await terse(["sample", out]);
    expect(outside).toBe(`error: ${path} was changed or damaged after it was saved; use an earlier save.\n`);
  });
});

describe("when a rank is lost", () => {
  it("ends the others, names the lost rank, and exits with its signal", async () => {
    let killed = false;
    const began = performance.now();
    const { code, err } = await terse(train("--steps=100000", "--evaluate.every=0"), (line, pid) => {
      const found = /step: 5\//.exec(line);
      if (!found || killed) return;
      killed = true;
      for (const rank of children(pid))
        if (readFileSync(`/proc/${rank}/environ`, "utf8").split("\0").includes("RANK=1"))
          process.kill(Number(rank), "SIGKILL");
    });
    expect(killed).toBe(true);
    expect(code).toBe(137);
    expect(err).toMatch(/^error: rank 1 on \S+ was ended by SIGKILL/m);
    expect(performance.now() - began).toBeLessThan(110_000); // hung otherwise
  });
});
