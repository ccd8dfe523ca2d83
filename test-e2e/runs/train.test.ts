import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";

const main = fileURLToPath(new URL("../../apps/train/src/main.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "terse-runs-"));
const text = join(folder, "text.txt");

/** A text with structure that a tiny model learns in a few steps. */
beforeAll(() => writeFileSync(text, "the quick brown fox jumps over the lazy dog. ".repeat(2000)));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

interface Outcome {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** Runs `./terse …` as a process; `during` may look at its output and interfere. */
function terse(
  args: readonly string[],
  during?: (line: string, pid: number) => void,
  env: NodeJS.ProcessEnv = {},
): Promise<Outcome> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ["--conditions=@terse/source", main, ...args], {
      cwd: folder,
      env: { ...process.env, OMP_NUM_THREADS: "1", ...env },
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (data: Buffer) => {
      out += data;
      for (const line of data.toString().split("\n")) during?.(line, child.pid!);
    });
    child.stderr.on("data", (data: Buffer) => {
      err += data;
    });
    child.on("close", (code, signal) => resolve({ code, signal, out, err }));
  });
}

const tiny = [
  "--model.preset=nano",
  "--data",
  text,
  "--evaluate.windows=8",
  "--logEvery=1",
  "--sample.bytes=20",
  "--schedule.warmup=2",
];
const train = (...args: string[]) => ["train", ...tiny, ...args];

describe("./terse train", () => {
  const run = join(folder, "run");
  let first: Outcome;
  beforeAll(async () => {
    first = await terse(train("--steps=30", "--optimizer.lr=3e-3", "--out", run));
  });

  it("learns on two processes, and says what it sent and where its files are", () => {
    expect(first.err).toBe("");
    expect(first.code).toBe(0);
    const losses = [...first.out.matchAll(/validation_loss: ([\d.]+)/g)].map((match) => Number(match[1]));
    expect(losses[0]).toBeGreaterThan(5);
    expect(losses.at(-1)).toBeLessThan(3.5);
    expect(first.out).toMatch(/2 ranks over gloo/);
    expect(first.out).toMatch(/sent per step: .* a rank; 32-bit Lion would send .* \((2|3)\d\.\d ×\)/);
    expect(first.out).toContain(run);
  });

  it("leaves a run folder with a line of metrics per logged step and nothing half-written", () => {
    const files = readdirSync(run);
    expect(files).toEqual(
      expect.arrayContaining(["config.json", "metrics.jsonl", "model.safetensors", "recipe.json", "state.json"]),
    );
    expect(files.filter((name) => name.endsWith(".tmp"))).toEqual([]);
    const metrics = readFileSync(join(run, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as Record<string, number>);
    expect(metrics.filter((line) => "train/loss" in line)).toHaveLength(30);
    expect(metrics.find((line) => "train/loss" in line)).toMatchObject({ messages: 2 });
  });

  it("can be sampled from, the same for the same seed", async () => {
    const [once, again] = [
      await terse(["sample", run, "--prompt", "the ", "--bytes", "30"]),
      await terse(["sample", run, "--prompt", "the ", "--bytes", "30"]),
    ];
    expect(once.code).toBe(0);
    expect(once.out).toMatch(/^the /);
    expect(again.out).toBe(once.out);
  });

  it("goes on from a saved run to the very weights of an unbroken one", async () => {
    const half = join(folder, "half");
    const whole = join(folder, "whole");
    const common = ["--steps=8", "--accumulate=2", "--save.every=4"];
    await terse(train(...common, "--out", whole));
    // The state of step 4 is what `half` holds when it is stopped there.
    const broken = await terse(train(...common, "--out", half), (line, pid) => {
      if (/step: 6\/8/.test(line)) process.kill(pid, "SIGTERM");
    });
    expect(broken.code).not.toBe(0);
    const resumed = await terse(train(...common, "--resume", half));
    expect(resumed.err).toBe("");
    expect(readFileSync(join(half, "model.safetensors")).equals(readFileSync(join(whole, "model.safetensors")))).toBe(
      true,
    );
  });

  it("gives the same weights for one seed, and others for another", async () => {
    const weights = async (name: string, seed: number) => {
      const out = join(folder, name);
      await terse(train("--steps=3", `--seed=${seed}`, "--out", out));
      return readFileSync(join(out, "model.safetensors")).toString("base64");
    };
    const [a, b, c] = [await weights("seed-a", 1), await weights("seed-b", 1), await weights("seed-c", 2)];
    expect(b).toBe(a);
    expect(c).not.toBe(a);
  });
});

describe("./terse train, given something it cannot use, ends with one line that says so", () => {
  const cases: [string, string[], RegExp][] = [
    ["a data path that is missing", ["--data", "nowhere"], /no file or folder at nowhere/],
    ["an unknown optimizer", ["--optimizer.name=lion-cup"], /lion-cup/],
    ["an unknown key", ["--optimizer.beta11=0.9"], /did you mean beta1/],
    ["a text shorter than one block", ["--data", "short.txt"], /short\.txt.*block/],
    ["an empty text", ["--data", "empty.txt"], /empty\.txt/],
    ["an output folder that cannot be made", ["--out", "text.txt/run"], /text\.txt/],
    ["a run to resume that is none", ["--resume", "nowhere"], /nowhere/],
  ];
  beforeAll(() => {
    writeFileSync(join(folder, "short.txt"), "too short");
    writeFileSync(join(folder, "empty.txt"), "");
  });

  it.each(cases)("%s", async (_, args, message) => {
    const { code, err } = await terse(train("--steps=2", ...args));
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
    const { code, err } = await terse(train("--steps=2", "--master-port", String(port)));
    server.close();
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(new RegExp(`^error: .*${port}.*`, "m"));
  });

  it("a loss that is not a number: no rank applies the step", async () => {
    const out = join(folder, "nan");
    const { code, err } = await terse(
      train("--steps=20", "--optimizer.lr=1e30", "--optimizer.clip=0", "--schedule.warmup=0", "--out", out),
    );
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/^error: .*not finite.*No rank has changed its parameters/m);
    expect(readdirSync(out)).not.toContain("model.safetensors");
  });

  it("a checkpoint that was cut short", async () => {
    const out = join(folder, "cut");
    await terse(train("--steps=2", "--out", out));
    truncateSync(join(out, "model.safetensors"), 10_000);
    const { code, err } = await terse(["sample", out]);
    expect(code).toBeGreaterThan(0);
    expect(err).toMatch(/^error: .*model\.safetensors.*cut short/m);
  });
});

describe("when a rank is lost", () => {
  it("ends the others, names it, and gives its signal as exit code", async () => {
    let killed = false;
    const began = performance.now();
    const { code, err } = await terse(train("--steps=100000", "--evaluate.every=0"), (line, pid) => {
      const found = /step: 5\//.exec(line);
      if (!found || killed) return;
      killed = true;
      for (const rank of readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" "))
        if (readFileSync(`/proc/${rank}/environ`, "utf8").split("\0").includes("RANK=1"))
          process.kill(Number(rank), "SIGKILL");
    });
    expect(killed).toBe(true);
    expect(code).toBe(137);
    expect(err).toMatch(/^error: rank 1 was ended by SIGKILL/m);
    expect(performance.now() - began).toBeLessThan(110_000); // hung otherwise
  });
});
