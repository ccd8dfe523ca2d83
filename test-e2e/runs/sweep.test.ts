/** `./terse sweep` as users run it: every combination in a process, cut off and gone on with, and what fails. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { outcomeOf, trainingFolder, main as trainMain, until } from "./terse.ts";

const main = fileURLToPath(new URL("../../apps/train/src/sweep/main.ts", import.meta.url));
const { folder, text } = trainingFolder("sweep");
const small = ["gpt-small-adamw", "--model.preset=nano", "--data", text, "--nproc-per-node=1"];
const short = [...small, "--evaluate.windows=2", "--sample.bytes=0", "--schedule.warmup=1", "--logEvery=1"];
const argv = (...args: string[]) => [...nodeFlags, main, ...args];
const sweep = (...args: string[]) => spawnSync(process.execPath, argv(...args), { cwd: folder, encoding: "utf8" });
const terse = (...args: string[]) =>
  spawnSync(process.execPath, [...nodeFlags, trainMain, ...args], { cwd: folder, encoding: "utf8" });
const endedIn = (out: string) =>
  readFileSync(join(folder, out, "ended.jsonl"), "utf8")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as { run: string; code: number });

describe("a sweep", () => {
  it("runs all combinations, says which one fails, and goes on without those that have ended", () => {
    const command = [...short, "--steps=2", "--optimizer.lr=1e-3,1e30", "--seeds=2", "--jobs=2", "--out=one"];
    const { status, stdout, stderr } = sweep(...command);
    expect(status, stdout + stderr).toBe(1);
    expect(stdout).toMatch(
      /lr-1e30-seed-0 failed with exit code 1; the others go on\. .*\n( {2}.*\n)* {2}error: the step/,
    );
    expect(stderr).toContain("failed: lr-1e30-seed-1, exit code 1");
    expect(stderr).toContain("resume: ./terse sweep --resume one");
    expect(stdout).toMatch(/^lr +runs +steps +validation +best +loss +sent +time\n1e-3 +2 +2 +\d\.\d{4} ± /m);
    for (const file of ["loss.svg", "table.txt", "lr-1e-3-seed-1/step-2/manifest.json", "lr-1e30-seed-0.log"])
      expect(existsSync(join(folder, "one", file)), file).toBe(true);

    const more = sweep(...command.with(command.indexOf("--seeds=2"), "--seeds=3"), "--json");
    expect(more.stderr).toContain("2 of 6 runs have ended before, and stay");
    const [best] = JSON.parse(more.stdout) as { runs: string[]; finished: number }[];
    expect(best).toMatchObject({ runs: ["lr-1e-3-seed-0", "lr-1e-3-seed-1", "lr-1e-3-seed-2"], finished: 3 });
    expect(endedIn("one").filter(({ run }) => run === "lr-1e-3-seed-0")).toHaveLength(1);

    const other = sweep(...short, "--steps=3", "--optimizer.lr=1e-3,1e30", "--out=one");
    expect(other.stderr).toMatch(
      /^error: --out: .*one has a sweep with other values of steps, which is not swept: choose/,
    );
  });

  it("saves at a signal, and goes on from there with the recipe that it began with", async () => {
    const recipe = join(folder, "mine.yaml");
    writeFileSync(recipe, "extends: gpt-small-adamw\n");
    const args = ["mine.yaml", ...short.slice(1), "--steps=4000", "--optimizer.lr=1e-3,2e-3", "--jobs=1", "--out=two"];
    const child = spawn(process.execPath, argv(...args), { cwd: folder });
    let printed = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (text: Buffer) => (printed += String(text)));
    const log = join(folder, "two", "lr-1e-3-seed-0.log");
    while (!existsSync(log) || !readFileSync(log, "utf8").includes("step: 5/4000"))
      await new Promise((done) => setTimeout(done, 50));
    const plan = join(folder, "two", "plan.json");
    const planned = readFileSync(plan, "utf8");
    expect(sweep(...args, "--seeds=2").stderr).toMatch(/^error: .*two is in use: process \d+ on .* writes to it/m);
    expect(readFileSync(plan, "utf8")).toBe(planned);
    child.kill("SIGINT");
    const code = await new Promise((done) => child.on("close", done));
    expect(code, printed).toBe(130);
    expect(printed).toContain("SIGINT: the runs save and end");
    expect(printed).toMatch(/\nresume: \.\/terse sweep --resume two\n$/);
    expect(printed).not.toContain("failed");

    const saved = /ends after (\d+) steps/.exec(readFileSync(log, "utf8"))![1]!;
    writeFileSync(recipe, "stepz: 1\n"); // of no account
    writeFileSync(plan, planned.replace("steps=4000", `steps=${Number(saved) + 2}`));
    const again = sweep("--resume=two", "--jobs=1");
    expect(again.status, again.stdout + again.stderr).toBe(0);
    expect(again.stdout).toContain("lr-1e-3-seed-0 goes on");
    const steps = readFileSync(join(folder, "two", "lr-1e-3-seed-0", "metrics.jsonl"), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as { step: number; "train/loss"?: number })
      .filter((line) => line["train/loss"] !== undefined)
      .map(({ step }) => step);
    expect(steps).toEqual(Array.from({ length: Number(saved) + 2 }, (_, step) => step));
  });

  it("that is killed ends its runs, and goes on at once by its command", async () => {
    const silent = [...short.with(short.indexOf("--logEvery=1"), "--logEvery=1000000"), "--evaluate.every=0"];
    const args = [...silent, "--save.every=100", "--steps=1000000", "--jobs=1", "--out=killed"];
    const child = spawn(process.execPath, argv(...args), { cwd: folder, stdio: "ignore" });
    const run = join(folder, "killed", "seed-0");
    const saved = () => Math.max(0, ...globSync("step-*", { cwd: run }).map((name) => Number(name.slice(5))));
    await until(() => saved() > 0);
    child.kill("SIGKILL");
    let before: number | undefined;
    const resumed = await outcomeOf([process.execPath, ...argv("--resume=killed")], folder, (line, pid) => {
      if (!line.startsWith("seed-0 goes on") || before !== undefined) return;
      before = saved();
      void until(() => saved() > before!).finally(() => process.kill(pid, "SIGINT"));
    });
    expect([resumed.code, resumed.err]).toEqual([130, "resume: ./terse sweep --resume killed\n"]);
    expect(resumed.out).not.toContain("failed");
    expect(saved()).toBeGreaterThan(before!);
    expect(existsSync(join(run, "lock.json"))).toBe(false);
  });

  it("of runs that have all been saved goes on without the weights that they began with", () => {
    const base = terse("train", ...small, "--steps=1", "--evaluate.windows=2", "--sample.bytes=0", "--out=base");
    expect(base.status, base.stderr).toBe(0);
    const tuned = ["fine-tune", ...short.slice(2), "--init-from=base", "--optimizer.lr=1e-4,2e-4", "--out=tuned"];
    const begun = sweep(...tuned, "--steps=2");
    expect(begun.status, begun.stdout + begun.stderr).toBe(0);
    rmSync(join(folder, "base"), { recursive: true });
    const plan = join(folder, "tuned", "plan.json");
    writeFileSync(plan, readFileSync(plan, "utf8").replace("steps=2", "steps=4"));
    rmSync(join(folder, "tuned", "ended.jsonl"));
    const again = sweep("--resume=tuned");
    expect(again.status, again.stdout + again.stderr).toBe(0);
    expect(existsSync(join(folder, "tuned", "lr-2e-4-seed-0", "step-4"))).toBe(true);

    const table = join(folder, "tuned", "table.txt"); // which a folder of this name replaces, as a full disk would
    rmSync(table);
    mkdirSync(table);
    const unwritten = sweep("--resume=tuned");
    expect(unwritten.status).toBe(1);
    expect(unwritten.stdout).toMatch(/^1e-4 +1 +4 /m);
    expect(unwritten.stderr).toMatch(
      /^error: Cannot write .*table\.txt: .*\nresume: \.\/terse sweep --resume tuned\n$/,
    );
    rmSync(table, { recursive: true });
    rmSync(join(folder, "tuned", "lr-2e-4-seed-0"), { recursive: true });
    expect(sweep("--resume=tuned").stderr).toMatch(/^error: there is no folder .*base; terse downloads no weights/);
  });

  it("finds what cannot run before the first run, a line each, and a typo with the near key", () => {
    const wrong = sweep(...short, "--optimizer.name=lion-cub,adamw", "--optimizer.bits=1,2", "--out=three");
    expect(wrong.status).toBe(1);
    expect(wrong.stderr).toMatch(
      /^error: optimizer\.name=adamw optimizer\.bits=1: optimizer\.bits: unknown option.*\noptimizer\.name=adamw optimizer\.bits=2: optimizer\.bits: unknown option.*\n$/,
    );
    expect(existsSync(join(folder, "three"))).toBe(false);
    expect(sweep(...short, "--optimizer.lrr=1,2").stderr).toMatch(
      /^error: optimizer\.lrr: unknown option; did you mean lr\?/,
    );
    expect(sweep(...short, "--device=cpu,cuda", "--dry-run").stdout).toMatch(/: 2 runs .* 1 at once\n/);
    const dry = sweep(...short, "--optimizer.lr=1e-3,2e-3", "--dry-run", "--out=three");
    expect(dry.stdout).toMatch(
      /: 2 runs \(2 combinations, 1 seed\), 1 rank each, \d+ at once\n(.*\n)* {2}lr-2e-3-seed-0 +/,
    );
    expect(existsSync(join(folder, "three"))).toBe(false);
  });
});
