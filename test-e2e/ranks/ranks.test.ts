import { spawnSync } from "node:child_process";
import { lookup } from "node:dns/promises";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { createServer } from "node:net";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import { type Group, loopback, serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { engines } from "./faulty-network.ts";
import { everyCollective } from "./programs/every-collective.ts";
import { random, seed } from "./seed.ts";
import { errorOf, freePort, type Outcome, type StartOptions, startRanks } from "./start-ranks.ts";

const exits = (outcomes: Outcome[]) => outcomes.map(({ code, signal }) => ({ code, signal }));
const allZero = (n: number) => Array.from({ length: n }, () => ({ code: 0, signal: null }));
const over = (engine: string) => () => ({ TERSE_ENGINE: engine });

describe("ranks in processes of their own", () => {
  it.for([
    ["tcp", 2],
    ["tcp", 3],
    ["gloo", 3],
  ] as const)(
    "get the same results and send the same bytes over %s as over loopback: %i ranks",
    async ([engine, size], context) => {
      if (!engines.includes(engine)) return context.skip("the build found no Gloo");
      await using run = await startRanks({
        program: "every-collective.ts",
        size,
        env: () => ({ TERSE_ENGINE: engine }),
      });
      const groups: Group[] = loopback(size);
      const want = await Promise.all(groups.map(everyCollective));
      await Promise.all(groups.map((group) => group.close()));
      const outcomes = await run.end();
      expect(outcomes.map((each) => each.stderr).join("")).toBe("");
      expect(outcomes.map((each) => each.reports[0]?.["digest"])).toEqual(want);
      expect(exits(outcomes)).toEqual(allZero(size));
    },
  );

  it("join by MASTER_ADDR and MASTER_PORT, where rank 0 runs the rendezvous", async () => {
    await using run = await startRanks({ program: "every-collective.ts", size: 2, rendezvous: { masterPort: 0 } });
    const outcomes = await run.end();
    expect(exits(outcomes)).toEqual(allZero(2));
    expect(outcomes.every((each) => "digest" in each.reports[0]!)).toBe(true);
  });

  it("join by the host's own name, which may resolve to loopback, and listen at one address", async (context) => {
    const name = hostname();
    if (!(await lookup(name).catch(() => undefined))) return context.skip(`the host's name, ${name}, does not resolve`);
    const masterPort = await freePort();
    await using run = await startRanks({
      program: "run-until-failure.ts",
      size: 2,
      args: ["idle"],
      rendezvous: { masterPort },
      env: () => ({ MASTER_ADDR: name }),
    });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    const { pid } = run.ranks[0]!.process;
    const own = new Set(readdirSync(`/proc/${pid}/fd`).map((fd) => readlinkSync(`/proc/${pid}/fd/${fd}`)));
    const listening = ["tcp", "tcp6"].flatMap((family) =>
      readFileSync(`/proc/${pid}/net/${family}`, "utf8")
        .split("\n")
        .map((line) => line.trim().split(/\s+/))
        .filter((fields) => fields[3] === "0A" && own.has(`socket:[${fields[9]}]`))
        .map(([, local]) => local!.split(":") as [string, string]),
    );
    const port = masterPort.toString(16).toUpperCase().padStart(4, "0");
    expect(listening.filter((each) => each[1] === port)).toHaveLength(1);
    for (const [address] of listening) expect(address).not.toMatch(/^0+$/);
  });
});

/**
 * The milliseconds by which a timer of this process is late at most, from now until the returned function is called.
 */
function longestStall(): () => number {
  let [before, longest] = [performance.now(), 0];
  const period = 20;
  const timer = setInterval(() => {
    const now = performance.now();
    longest = Math.max(longest, now - before - period);
    before = now;
  }, period);
  return () => {
    clearInterval(timer);
    return longest;
  };
}

describe("a rank that is killed", () => {
  async function killAndWatch(
    engine: string,
    mode: "busy" | "idle",
    victim: number,
    size: number,
    delay: number,
    masterPort = -1,
  ): Promise<void> {
    await using run = await startRanks({
      program: "run-until-failure.ts",
      size,
      args: [mode],
      env: over(engine),
      outageSeconds: 600, // so it is not its silence that tells
      ...(masterPort >= 0 ? { rendezvous: { masterPort } } : {}),
    });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    await sleep(delay);
    const stall = longestStall();
    const killedAt = Date.now();
    run.ranks[victim]!.process.kill("SIGKILL");
    const outcomes = await run.end();
    // What a busy machine takes from this process it may take from the ranks, several times.
    const allowed = 10_000 + 20 * stall();
    for (const outcome of outcomes) {
      if (outcome.rank === victim) continue;
      const { failedAt } = outcome.reports.find((report) => "failedAt" in report) as { failedAt: number };
      expect(failedAt - killedAt, "milliseconds until the lost rank is named").toBeLessThan(allowed);
      expect(errorOf(outcome), outcome.stderr).toMatchObject({ name: "RankLostError", rank: victim });
      expect(errorOf(outcome)!.message).toMatch(new RegExp(`^rank ${victim} .*is lost`));
      expect(outcome.reports).toContainEqual({ same: true });
      expect(outcome.reports).toContainEqual({ closed: true });
      expect([outcome.code, outcome.signal]).toEqual([0, null]);
    }
  }

  describe.each(engines)("over %s", (engine) => {
    it.each([
      [0, 1],
      [1, 2],
      [2, 3],
      [0, 4],
      [1, 5],
      [2, 6],
    ])(
      `during operations ends all others with an error that names it: rank %i, at moment %i of seed ${seed}`,
      (victim, moment) => killAndWatch(engine, "busy", victim, 3, 400 * random(`kill ${moment}`)),
    );
    it.each([0, 2])(`between operations ends all others with an error that names it: rank %i, seed ${seed}`, (victim) =>
      killAndWatch(engine, "idle", victim, 3, 1000 * random(`kill idle ${victim}`)),
    );
    it(`is named by its only peer (seed ${seed})`, () =>
      killAndWatch(engine, "busy", 1, 2, 300 * random("kill one of two")));
    it.each([0, 1])(`is named where rank 0 runs the rendezvous: rank %i, seed ${seed}`, (victim) =>
      killAndWatch(engine, "busy", victim, 3, 300 * random(`kill beside the holder ${victim}`), 0),
    );
  });

  // These wait for the end of a silence: all at once.
  it.concurrent.each(engines)(
    "is lost when it is only stopped, after the time that silence is allowed: %s",
    async (engine) => {
      await using run = await startRanks({
        program: "run-until-failure.ts",
        size: 3,
        outageSeconds: 2.4,
        env: over(engine),
      });
      await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
      run.ranks[1]!.process.kill("SIGSTOP");
      for (const survivor of [run.ranks[0]!, run.ranks[2]!]) {
        const outcome = await survivor.ended;
        expect(errorOf(outcome)).toMatchObject({ name: "RankLostError", rank: 1 });
        expect(errorOf(outcome)!.message).toMatch(/no heartbeat for 4.2 s/);
        expect([outcome.code, outcome.signal]).toEqual([0, null]);
      }
    },
  );

  it.concurrent("is lost when it is stopped and runs the rendezvous", async () => {
    await using run = await startRanks({ program: "run-until-failure.ts", size: 3, rendezvous: { masterPort: 0 } });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    run.ranks[0]!.process.kill("SIGSTOP");
    for (const survivor of [run.ranks[1]!, run.ranks[2]!]) {
      const outcome = await survivor.ended;
      expect(errorOf(outcome)).toMatchObject({ name: "RankLostError", rank: 0 });
      expect(errorOf(outcome)!.message).toMatch(/^rank 0, which runs the rendezvous, is lost: no heartbeat for 10 s/);
      expect([outcome.code, outcome.signal, outcome.reports.at(-1)]).toEqual([0, null, { closed: true }]);
    }
  });

  it.concurrent("is not confused with one that blocks its event loop", async () => {
    await using run = await startRanks({ program: "block-event-loop.ts", size: 2, outageSeconds: 1.2, args: ["6"] });
    const outcomes = await run.end();
    expect(outcomes.map((each) => each.reports.at(-1))).toEqual([{ sum: 2 }, { sum: 2 }]);
    expect(exits(outcomes)).toEqual(allZero(2));
  });
});

describe.concurrent("a world that cannot be joined", () => {
  /**
   * Starts the ranks first and the rendezvous when all of them are connecting, so that its deadline does not include
   * their start.
   */
  async function startThenServe(options: StartOptions, deadlineSeconds: number) {
    const port = await freePort();
    const run = await startRanks({
      ...options,
      args: ["60", "", "here"],
      env: (rank) => ({ TERSE_TOKEN: "t", TERSE_RENDEZVOUS: `127.0.0.1:${port}`, ...options.env?.(rank) }),
    });
    await Promise.all(run.ranks.map((rank) => rank.reported("here")));
    const server = await serveRendezvous({ size: options.size, token: "t", port, deadlineSeconds });
    const stop = async () => {
      await run[Symbol.asyncDispose]();
      await server.close();
    };
    return { run, server, [Symbol.asyncDispose]: stop };
  }

  it("names the rank that did not connect", async () => {
    await using world = await startThenServe({ program: "join.ts", size: 3, absent: [1] }, 10);
    for (const outcome of await world.run.end()) {
      expect(errorOf(outcome)).toMatchObject({ name: "RendezvousError", missing: [1] });
      expect(errorOf(outcome)!.message).toMatch(/^rank 1 of 3 did not connect to the rendezvous within 10 s/);
      expect([outcome.code, outcome.signal]).toEqual([1, null]);
    }
    expect(await world.server.failure).toMatchObject({ kind: "missing", ranks: [1] });
  });

  it("refuses a rank with another world size, and tells the others at once", async () => {
    await using run = await startRanks({ program: "join.ts", size: 2, worldSize: (rank) => (rank === 1 ? 3 : 2) });
    for (const outcome of await run.end()) {
      expect(errorOf(outcome)!.message).toMatch(
        /rank 1 \(pid \d+ on .+\) was started for a world of 3 ranks, and this world has 2; WORLD_SIZE must be the same for all/,
      );
      expect([outcome.code, outcome.signal]).toEqual([1, null]);
    }
  });

  it("refuses a rank with another configuration, and tells the others at once", async () => {
    await using server = await serveRendezvous({ size: 2, token: "t" });
    const env = () => ({ TERSE_TOKEN: "t", TERSE_RENDEZVOUS: `${server.host}:${server.port}` });
    await using one = await startRanks({ program: "join.ts", size: 2, absent: [1], env, args: ["60", "lr 1"] });
    await using two = await startRanks({ program: "join.ts", size: 2, absent: [0], env, args: ["60", "lr 2"] });
    for (const [outcome] of [await one.end(), await two.end()])
      expect(errorOf(outcome!)!.message).toMatch(/runs with another configuration or version than rank/);
  });

  it("refuses a wrong token without saying the right one", async () => {
    const env = (rank: number) => (rank === 1 ? { TERSE_TOKEN: "guess" } : {});
    await using world = await startThenServe({ program: "join.ts", size: 2, env }, 10);
    const [zero, one] = await world.run.end();
    expect(errorOf(one!)!.message).toMatch(/refused rank 1: the token is wrong; TERSE_TOKEN must be the one/);
    expect(errorOf(zero!)).toMatchObject({ missing: [1] });
  });

  it("fails with one line when the port is in use", async () => {
    const other = createServer();
    const port = await freePort();
    await new Promise<void>((resolve) => other.listen(port, "127.0.0.1", resolve));
    await using run = await startRanks({ program: "join.ts", size: 2, absent: [1], rendezvous: { masterPort: port } });
    const [outcome] = await run.end();
    expect(errorOf(outcome!)!.message).toBe(
      `the rendezvous cannot listen on 127.0.0.1:${port}: it is in use; choose another port (MASTER_PORT, or --rdzv-endpoint), or end the run that holds it`,
    );
    expect([outcome!.code, outcome!.signal]).toEqual([1, null]);
    other.close();
  });

  it.each([
    [1, 2],
    [1, 5],
    [1, 8],
    [0, 5],
    [0, 9],
  ])("fails on all ranks when one runs out of file descriptors: rank %i, which has %i for it", async (rank, left) => {
    await using run = await startRanks({
      program: "few-file-descriptors.ts",
      size: 2,
      args: [`${left}`, `${rank}`],
      within: (each) => (each === rank ? ["bash", "-c", 'ulimit -n 64; exec "$@"', "--"] : []),
    });
    for (const outcome of await run.end()) {
      expect([outcome.code, outcome.signal, outcome.stderr]).toEqual([1, null, ""]);
      expect(errorOf(outcome)!.message).toMatch(/Too many open files|no file descriptor is left/);
    }
  });

  it("needs one port per rank, and not one per connection", async (context) => {
    const name = `terse-ports-${process.pid}`;
    const ip = (line: string) => spawnSync("ip", line.split(" ")).status === 0;
    if (!ip(`netns add ${name}`)) return context.skip("a network namespace needs root and ip");
    try {
      const inside = ["ip", "netns", "exec", name];
      const range = spawnSync("ip", [
        "netns",
        "exec",
        name,
        "sysctl",
        "-w",
        "net.ipv4.ip_local_port_range=50000 50029",
      ]);
      if (range.status !== 0 || !ip(`-n ${name} link set lo up`)) return context.skip("its ports cannot be chosen");
      const some = { program: "join.ts", size: 5, rendezvous: { masterPort: 29500 }, within: () => inside };
      await using run = await startRanks(some);
      expect(exits(await run.end())).toEqual(allZero(5));
    } finally {
      ip(`netns del ${name}`);
    }
  });

  it("fails when no process runs the rendezvous", async () => {
    await using run = await startRanks({
      program: "join.ts",
      size: 2,
      absent: [0],
      rendezvous: { masterPort: 0 },
      args: ["1"],
    });
    const [outcome] = await run.end();
    expect(errorOf(outcome!)!.message).toMatch(
      /^rank 1 found no rendezvous at 127\.0\.0\.1:\d+ within 1 s \(connect ECONNREFUSED/,
    );
  });
});

describe.each(engines)("ranks that do not agree over %s", (engine) => {
  it.each([
    ["10", "11"],
    ["3000000", "2999999"],
    ["10", "3000000"],
  ])("fail together with an error that names the sizes: %s and %s", async (...lengths) => {
    const args = lengths.map((length) => `allReduce f32 ${length}`);
    await using run = await startRanks({ program: "mismatched-calls.ts", size: 3, args, env: over(engine) });
    const outcomes = await run.end();
    expect(exits(outcomes)).toEqual(allZero(3));
    const messages = outcomes.map((outcome) => errorOf(outcome)!.message);
    expect(new Set(messages).size).toBe(1);
    expect(messages[0]).toMatch(/all-reduce number 1 failed on rank \d: rank \d has \d+ f32 where rank \d has \d+ f32/);
    expect(errorOf(outcomes[0]!)).toMatchObject({ name: "CollectiveError", reason: "mismatch" });
  });
});

describe("a rank that exits without closing its groups", () => {
  it("exits with operations pending without a crash, and the others name it", async () => {
    await using run = await startRanks({ program: "exit-without-close.ts", size: 3, args: ["exit-with-pending"] });
    const [zero, ...others] = await run.end();
    expect([zero!.code, zero!.signal, zero!.stderr]).toEqual([7, null, ""]);
    for (const other of others) {
      expect(errorOf(other)).toMatchObject({ name: "RankLostError", rank: 0 });
      expect([other.code, other.signal]).toEqual([0, null]);
    }
  });

  it("ends by an exception with operations pending without a crash, and the others name it", async () => {
    await using run = await startRanks({ program: "exit-without-close.ts", size: 3, args: ["throw-with-pending"] });
    const [zero, ...others] = await run.end();
    expect([zero!.code, zero!.signal]).toEqual([1, null]);
    expect(zero!.stderr).toMatch(/a bug of the program/);
    for (const other of others) {
      expect(errorOf(other)).toMatchObject({ name: "RankLostError", rank: 0 });
      expect([other.code, other.signal]).toEqual([0, null]);
    }
  });

  it.each(["forget-to-close", "exit-without-close"])(
    "ends without an error when nothing is pending: %s",
    async (way) => {
      await using run = await startRanks({ program: "exit-without-close.ts", size: 2, args: [way] });
      const outcomes = await run.end();
      expect(exits(outcomes)).toEqual(allZero(2));
      expect(outcomes.map((each) => each.stderr).join("")).toBe("");
    },
  );

  it("ends without an error where rank 0 runs the rendezvous and does not close either", async () => {
    await using run = await startRanks({
      program: "exit-without-close.ts",
      size: 2,
      args: ["forget-to-close"],
      rendezvous: { masterPort: 0 },
    });
    expect(exits(await run.end())).toEqual(allZero(2));
  });
});

describe("a process that joins and leaves many worlds", () => {
  it.concurrent.for([
    ["tcp", "close", 120],
    ["tcp", "fail", 120],
    ["tcp", "cancel", 60],
    ["gloo", "fail", 120],
  ] as const)(
    "holds no more threads, descriptors and memory at the end than after its first rounds: %s, %s, %i rounds",
    async (each, context) => {
      const [engine, manner, rounds] = each;
      if (!engines.includes(engine)) return context.skip("the build found no Gloo");
      // Freed memory leaves the process at once. By default glibc keeps blocks as large as those it has seen before.
      const malloc = { MALLOC_MMAP_THRESHOLD_: "65536", MALLOC_TRIM_THRESHOLD_: "65536", MALLOC_ARENA_MAX: "2" };
      const env = () => ({
        TERSE_ENGINE: engine,
        NODE_OPTIONS: "--expose-gc --max-semi-space-size=1",
        ...malloc,
      });
      await using run = await startRanks({ program: "repeated-worlds.ts", size: 1, args: [`${rounds}`, manner], env });
      const [outcome] = await run.end();
      expect([outcome!.code, outcome!.signal, outcome!.stderr]).toEqual([0, null, ""]);
      const seen = outcome!.reports as unknown as { fd: number; task: number; rss: number }[];
      expect(seen.length).toBe(rounds / 5);
      const [first, last] = [seen[0]!, seen.at(-1)!];
      expect(last.task).toBeLessThanOrEqual(first.task);
      expect(last.fd).toBeLessThanOrEqual(first.fd);
      const least = (some: typeof seen) => Math.min(...some.map(({ rss }) => rss)) / 2 ** 20;
      // After half of the rounds the code is compiled and the pools are full. From then on, a leak of a round's smaller
      // array would be rounds / 10.
      const half = seen.slice(seen.length / 2);
      expect(least(half.slice(-3)) - least(half.slice(0, 3))).toBeLessThan(rounds / 15);
    },
  );
});

describe("beside libtorch", () => {
  // libtorch contains a Gloo of its own, with the same symbols.
  const noGloo = !engines.includes("gloo");
  const orders = ["tensor-first", "collectives-first"];
  it.skipIf(noGloo).each(orders)("gloo, where the build has it, moves the memory of tensors: %s", async (order) => {
    const env = () => ({ TERSE_ENGINE: "gloo" });
    await using run = await startRanks({ program: "gloo-beside-libtorch.ts", size: 2, args: [order], env });
    for (const outcome of await run.end()) {
      expect([outcome.code, outcome.signal, outcome.stderr]).toEqual([0, null, ""]);
      expect(outcome.reports).toEqual([
        {
          backward: true,
          right: true,
          half: [3, 512, 6, -0.5],
          libraries: ["libgloo.so", "libtorch_cpu.so"],
          warm: 4,
        },
      ]);
    }
  });
});
