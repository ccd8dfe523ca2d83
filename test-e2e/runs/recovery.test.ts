/** Ranks, launchers and machines that are killed: what ends, what starts again, and where it goes on. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { afterEach, beforeAll, describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { isRunning } from "../../tools/testing/is-running.ts";
import { freePort } from "../ranks/start-ranks.ts";
import { children, main, type Outcome, rankOf, terseIn, tinyTraining, trainingFolder, until } from "./terse.ts";

const { folder, text } = trainingFolder("recovery");
/** How many kills a run has to survive: TERSE_KILLS=50 ./terse test recovery. */
const kills = Number(process.env["TERSE_KILLS"] ?? 3);
const steps = 24 * (kills + 1); // fewer than 24 between two kills
const train = (...more: string[]) => [
  ...tinyTraining(text),
  "--sample.bytes=0",
  "--save.every=3",
  "--evaluate.every=8",
  "--logEvery=2",
  "--measureEvery=10",
  "--optimizer.name=one-bit-lamb", // which has state of every kind, and is killed in its warm-up and later
  "--optimizer.warmup=0.5",
  `--steps=${steps}`,
  ...more,
];
const at = (name: string) => join(folder, name);
const weights = (run: string) => readFileSync(join(at(run), `step-${steps}`, "model.safetensors"));

/** The lines of metrics.jsonl without what depends on the time, or on the memory. */
function metrics(run: string): object[] {
  const measured = /^(time\/|ranks\/|skew_|slowest_|.*_per_second$|.*_seconds$|.*_fraction$)/;
  return readFileSync(join(at(run), "metrics.jsonl"), "utf8")
    .trim()
    .split("\n")
    .map((line) => Object.entries(JSON.parse(line) as object).filter(([key]) => !measured.test(key)))
    .map((entries) => Object.fromEntries(entries));
}

beforeAll(async () => {
  const { code, err } = await terseIn(folder, train("--out=undisturbed"));
  expect(code, err).toBe(0);
});

describe("a run whose ranks are killed at random moments", () => {
  it(`goes on by itself ${kills} times, and ends with the weights and the metrics of one that nobody disturbed`, async () => {
    const moments: string[] = [];
    let left = kills;
    const victim = () => {
      const [rank, wait, lines] = [Math.floor(2 * Math.random()), 150 * Math.random(), Math.floor(5 * Math.random())];
      return { rank, wait, lines };
    };
    let next = victim();
    let isWaiting = false; // for the next attempt
    const kill = (pid: number, { rank, wait }: ReturnType<typeof victim>, line: string) => {
      const child = rankOf(pid, rank);
      if (child === undefined) return;
      left--;
      moments.push(`rank ${rank} ${wait.toFixed(0)} ms after "${line}"`);
      process.kill(child, "SIGKILL");
    };
    const during = (line: string, pid: number) => {
      // The first line of an attempt comes while its parts are being made; then a line for every second step.
      const isFirst = line.startsWith("model ");
      if (isFirst) isWaiting = false;
      if (isWaiting || left === 0 || !(isFirst || /^step: \d+\//.test(line)) || next.lines-- > 0) return;
      const now = next;
      next = victim();
      isWaiting = true; // one kill for each attempt
      setTimeout(() => kill(pid, now, line), now.wait);
    };
    const args = train("--out=killed", `--max-restarts=${kills}`, "--log-dir=logs");
    const { code, err, out } = await terseIn(folder, args, during);
    expect(code, `${moments.join("\n")}\n${err}`).toBe(0);
    expect(moments).toHaveLength(kills);
    expect(err.match(/^restart \d+ of \d+/gm)).toHaveLength(kills);
    expect(err).toContain(` on ${hostname()} was ended by SIGKILL and all others were stopped.`);
    expect(weights("killed").equals(weights("undisturbed")), moments.join("\n")).toBe(true);
    expect(metrics("killed"), moments.join("\n")).toEqual(metrics("undisturbed"));
    const log = (attempt: number, rank: number) => readFileSync(at(`logs/attempt-${attempt}/rank-${rank}.log`), "utf8");
    expect(log(kills, 0)).toContain(`step: ${steps}/${steps}`);
    for (let attempt = 0; attempt <= kills; attempt++) for (const rank of [0, 1]) log(attempt, rank);
    expect(out.match(/^model /gm)!.length).toBeLessThanOrEqual(kills + 1);
  });
});

describe("a launcher", () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
  });

  it("leaves no rank behind when it is killed, also none that was stopped", async () => {
    const command = [...nodeFlags, main, ...train("--steps=1000000", "--out=orphans")];
    const launcher = spawn(process.execPath, command, { cwd: folder, stdio: "ignore" });
    started.push(launcher);
    await until(() => existsSync(at("orphans/step-3")));
    const ranks = children(launcher.pid!);
    expect(ranks).toHaveLength(2);
    process.kill(Number(ranks[1]), "SIGSTOP");
    launcher.kill("SIGKILL");
    await until(() => !ranks.some(isRunning));
  });

  it("kills a rank that does not end within --shutdown-timeout after a signal, and says so", async () => {
    let stopped = false;
    const args = train("--steps=1000000", "--out=stuck", "--shutdown-timeout=1", "--max-restarts=3");
    const { code, err } = await terseIn(folder, args, (line, pid) => {
      if (stopped || !/step: 3\//.test(line)) return;
      stopped = true;
      process.kill(rankOf(pid, 1)!, "SIGSTOP");
      process.kill(pid, "SIGTERM");
    });
    expect(code).toBe(137);
    expect(err).toMatch(/^error: the ranks did not end within 1 s after SIGTERM \(--shutdown-timeout\)/m);
    expect(err).not.toContain("restart");
  });
});

describe("the launchers of two machines, as Kubeflow's PyTorchJob starts them", () => {
  it("start their ranks together, start all again when one is killed, and say the same of it", async () => {
    const port = `${await freePort()}`;
    let killed = false;
    const launchers = [0, 1].map((node) => {
      // What its operator sets in each pod; the master's service is this machine's loopback address.
      const env = {
        PET_NNODES: "2",
        PET_NPROC_PER_NODE: "1",
        PET_NODE_RANK: `${node}`,
        PET_MASTER_ADDR: "127.0.0.1",
        PET_MASTER_PORT: port,
        MASTER_ADDR: "127.0.0.1",
        MASTER_PORT: port,
        WORLD_SIZE: "2",
        RANK: `${node}`,
        PYTHONUNBUFFERED: "1",
      };
      const during = (line: string, pid: number) => {
        if (killed || !/^step: 9\//.test(line)) return;
        killed = true;
        process.kill(Number(children(pid)[0]), "SIGKILL"); // rank 0: only it prints steps
      };
      return terseIn(folder, train("--out=pods", "--resume=auto", "--max-restarts=1"), during, env);
    });
    const outcomes: Outcome[] = await Promise.all(launchers);
    for (const { code, err } of outcomes) {
      expect(code, err).toBe(0);
      expect(err).toMatch(/^error: rank 0 on \S+ was ended by SIGKILL and all others were stopped\./m);
      expect(err).toMatch(/^restart 1 of 1, from the last save in .*pods$/m);
    }
    expect(weights("pods").equals(weights("undisturbed"))).toBe(true);
  });
});

const python = process.env["TERSE_PYTHON"] ?? "";
const why = process.env["TERSE_PYTHON_MISSING"] ?? "TERSE_PYTHON is not set; ./terse test sets it";

describe.skipIf(!python)(`torchrun's elastic agents${python ? "" : ` (skipped: ${why})`}`, () => {
  const started: ChildProcess[] = [];
  afterEach(() => {
    for (const child of started.splice(0)) child.kill("SIGKILL");
  });
  /** How many ranks wrote the newest save. */
  const ranksOf = (run: string) => {
    const names = existsSync(at(run)) ? readdirSync(at(run)) : [];
    const saved = names.flatMap((name) => Number(/^step-(\d+)$/.exec(name)?.[1] ?? []));
    const manifest = join(at(run), `step-${Math.max(...saved)}`, "manifest.json");
    return existsSync(manifest) ? (JSON.parse(readFileSync(manifest, "utf8")) as { ranks: number }).ranks : 0;
  };

  it("go on with the ranks that there are when a machine comes, and when it goes, from the last save", async () => {
    const port = await freePort();
    const start = (isHost: 0 | 1) => {
      const options = [
        ...["-m", "torch.distributed.run", "--no-python", "--nnodes=1:4", "--nproc-per-node=1", "--max-restarts=3"],
        ...["--rdzv-backend=c10d", `--rdzv-endpoint=localhost:${port}`, "--rdzv-id=1"],
        // An agent that was not heard for five seconds is gone. With fewer a busy machine makes two worlds.
        `--rdzv-conf=last_call_timeout=1,keep_alive_interval=1,keep_alive_max_attempt=5,is_host=${isHost}`,
      ];
      const command = [process.execPath, ...nodeFlags, main];
      const args = [...options, ...command, ...train("--out=elastic", "--resume=auto", "--steps=1000000")];
      // docs/launching.md says why.
      const env = { ...process.env, TORCH_DISABLE_SHARE_RDZV_TCP_STORE: "1" };
      const agent = spawn(python, args, { cwd: folder, env, stdio: ["ignore", "pipe", "ignore"] });
      started.push(agent);
      return agent;
    };
    // torchrun orders its agents by address and process number, and those of processes wrap: rank 0, which prints, may
    // be either's.
    let out = "";
    const collect = (data: Buffer) => {
      out += data;
    };
    start(1).stdout.on("data", collect);
    await until(() => ranksOf("elastic") === 1);
    const second = start(0);
    second.stdout.on("data", collect);
    await until(() => ranksOf("elastic") === 2);
    second.kill("SIGKILL"); // its rank ends with it
    await until(() => ranksOf("elastic") === 1);
    expect(out).toMatch(/^saved by 1 rank, goes on with 2: .*^saved by 2 ranks, goes on with 1: /ms);
  });
});
