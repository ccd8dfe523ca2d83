/** Ranks that mpirun starts: the engine mpi between processes, and the end of the job when a rank dies. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Group, loopback } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineContract } from "../../packages/collectives/src/testing/engine-contract/engine-contract.ts";
import { nodeFlags } from "../../tools/programs.ts";
import { isRunning } from "../../tools/testing/is-running.ts";
import { everyCollective } from "./programs/every-collective.ts";
import { RemoteRanks } from "./remote-groups.ts";
import { ShortTraining } from "./short-training.ts";
import { freePort } from "./start-ranks.ts";

const prefix = process.env["TERSE_MPI"];
const mpirun = prefix ? join(prefix, "bin", "mpirun") : "mpirun";
const version = spawnSync(mpirun, ["--version"], { encoding: "utf8" }).stdout ?? "";
const isOpenMpi = version.includes("Open MPI");
const why = !collectives().hasMpi
  ? `the build found no MPI: ${process.env["TERSE_MPI_MISSING"] ?? "`./terse setup` installs one"}`
  : version === ""
    ? "there is no mpirun"
    : undefined;

// With this option Open MPI does not end the other ranks, so that their errors can be checked. Hydra always ends them.
const recovery = isOpenMpi ? ["--enable-recovery"] : [];

const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
});

interface Job {
  readonly ended: Promise<{ code: number; output: string }>;
  output(): string;
}

/**
 * Starts more ranks than cores, none of them bound to a core. mpirun needs a confirmation where the tests run as root.
 */
function start(size: number, command: readonly string[], env: NodeJS.ProcessEnv = {}, options: string[] = []): Job {
  const openMpiOptions = ["--oversubscribe", "--bind-to", "none"];
  const child = spawn(mpirun, [...(isOpenMpi ? openMpiOptions : []), ...options, "-n", `${size}`, ...command], {
    env: {
      ...process.env,
      OMPI_ALLOW_RUN_AS_ROOT: "1",
      OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: "1",
      TERSE_ENGINE: "mpi",
      TERSE_TOKEN: "",
      ...env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const ended = new Promise<{ code: number; output: string }>((resolve, reject) => {
    child.on("error", reject).on("close", (code) => resolve({ code: code ?? -1, output }));
  });
  return { ended, output: () => output };
}

const program = (name: string, ...args: string[]) => [
  process.execPath,
  ...nodeFlags,
  fileURLToPath(new URL(`programs/${name}`, import.meta.url)),
  ...args,
];
const all = (output: string, pattern: RegExp) => [...output.matchAll(pattern)].map((match) => match[1]!);

describe.skipIf(why !== undefined)(`mpirun${why === undefined ? "" : ` (skipped: ${why})`}`, () => {
  it.each([2, 4])(
    "starts %i ranks that get the same results and send the same bytes over mpi as over loopback",
    async (size) => {
      const job = start(size, program("every-collective.ts"));
      const groups: Group[] = loopback(size);
      const want = await Promise.all(groups.map(everyCollective));
      await Promise.all(groups.map((group) => group.close()));
      const { code, output } = await job.ended;
      expect(all(output, /\{"digest":"([^"]+)"\}/g).sort(), output).toEqual([...want].sort());
      expect(code).toBe(0);
    },
  );

  const rounds = ["--local.syncEvery=2", "--local.delay=1", "--local.optimizer.lr=1"];
  it.each([
    ["messages in every step", []],
    ["local steps", [...rounds, "--exchange.gradient.name=codec", "--exchange.gradient.codec=scaled-sign"]],
  ])("starts the ranks of ./terse train, which end with the same weights over mpi as over tcp: %s", async (_, more) => {
    using training = new ShortTraining();
    for (const [engine, name] of [
      ["mpi", "over-mpi"],
      ["tcp", "over-tcp"],
    ] as const) {
      const env = { OMP_NUM_THREADS: "1", MASTER_ADDR: "127.0.0.1", MASTER_PORT: `${await freePort()}` };
      const { code, output } = await start(2, training.command(name, ...more), { TERSE_ENGINE: engine, ...env }).ended;
      expect(code, output).toBe(0);
      expect(output).toContain(`2 ranks over ${engine}`);
    }
    expect(training.weights("over-mpi")).toBe(training.weights("over-tcp"));
  });

  describe.each([2, 4])("starts %i ranks, on which the engine contract runs:", (size) => {
    let ranks: RemoteRanks;
    let join: (engine: string) => Promise<Group[]>;
    let job: Job;
    beforeAll(async () => {
      ranks = await RemoteRanks.listen();
      job = start(size, program("remote-rank.ts", ranks.port));
      join = await ranks.connected(size);
    });
    afterAll(async () => {
      await ranks[Symbol.asyncDispose]();
      // The exit code says nothing: after the contract's failures MPI is not finalized, which mpirun calls an abnormal
      // end.
      expect((await job.ended).output).not.toMatch(/signal \d/i);
    });
    engineContract("mpi", () => join("mpi"), { sizes: [size], sharesMemory: false });
  });

  it("starts ranks that find each other by MPI and need no token, without any other output", async () => {
    const { code, output } = await start(3, program("join.ts")).ended;
    expect(output.trim().split("\n").sort()).toEqual([0, 1, 2].map((rank) => `{"joined":${rank},"of":3}`));
    expect(code).toBe(0);
  });

  it("starts ranks on one machine that find each other by the launcher's variables, for the engine tcp", async () => {
    const port = isOpenMpi ? {} : { MASTER_PORT: `${await freePort()}` };
    const { code, output } = await start(3, program("join.ts"), { TERSE_ENGINE: "tcp", ...port }).ended;
    expect(output.trim().split("\n").sort()).toEqual([0, 1, 2].map((rank) => `{"joined":${rank},"of":3}`));
    expect(code).toBe(0);
  });

  it("starts ranks that may be on several machines, which use an address that other machines can reach", async () => {
    const apart = ["sh", "-c", `OMPI_COMM_WORLD_LOCAL_SIZE=1 MPI_LOCALNRANKS=1 exec "$@"`, "sh"];
    const { code, output } = await start(2, [...apart, ...program("join.ts")]).ended;
    expect(output.trim().split("\n").sort()).toEqual([0, 1].map((rank) => `{"joined":${rank},"of":2}`));
    expect(code).toBe(0);
  });

  it("refuses ranks of several jobs", async () => {
    const MASTER_PORT = `${20000 + (process.pid % 10000)}`;
    const one = (rank: number) =>
      start(1, program("join.ts"), { RANK: `${rank}`, WORLD_SIZE: "2", MASTER_ADDR: "127.0.0.1", MASTER_PORT }).ended;
    const outcomes = await Promise.all([one(0), one(1)]);
    const output = outcomes.map((each) => each.output).join("");
    expect(output).toMatch(/rank [01] belongs to another MPI job; start all ranks with one mpirun/);
    expect(outcomes.every(({ code }) => code !== 0)).toBe(true);
  });

  it("fails at the deadline when a rank does not join", async () => {
    const absent = ["sh", "-c", `[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && exec sleep 8; exec "$@"`, "sh"];
    const { code, output } = await start(2, [...absent, ...program("join.ts", "2")]).ended;
    expect(output).toContain("MPI did not start in time: every process of the job must call it, and one has not");
    expect(code).not.toBe(0);
  });

  it.each([
    ["allReduce f32 10", "allReduce f32 11", /rank \d has 1[01] f32 where rank \d has 1[01] f32/],
    ["allReduce f32 3000000", "allReduce i32 3000000", /rank \d has 3000000 [fi]32 where rank \d has 3000000 [fi]32/],
    ["allReduce f32 3000000", "allGather f32 3000000", /is in all-(gather|reduce) number 1 while rank \d is in all-/],
  ])("ends all ranks with one error when their calls differ: %s, and %s", async (others, rank1, sentence) => {
    const { output } = await start(3, program("mismatched-calls.ts", others, rank1), {}, recovery).ended;
    const errors = all(output, /"error":(\{[^}]*\})/g).map((text) => JSON.parse(text));
    if (isOpenMpi) expect(errors, output).toHaveLength(3);
    for (const error of errors) expect(error).toEqual(errors[0]);
    expect(errors[0]).toMatchObject({ name: "CollectiveError", reason: "mismatch" });
    expect(errors[0].message).toMatch(sentence);
  });

  it.each([
    ["busy", "SIGKILL"],
    ["idle", "SIGKILL"],
    ["busy", "SIGSTOP"],
  ] as const)("ends all ranks when, while they are %s, one gets a %s", async (mode, signal) => {
    const pids = mkdtempSync(join(tmpdir(), "terse-mpirun-pids-"));
    const write = ["sh", "-c", `echo $$ >${pids}/"$OMPI_COMM_WORLD_RANK$PMI_RANK"; exec "$@"`, "sh"];
    const job = start(3, [...write, ...program("run-until-failure.ts", mode)], {}, recovery);
    const pid = (rank: number) => Number(readFileSync(join(pids, `${rank}`), "utf8"));
    while (all(job.output(), /("ready")/g).length < 3) await sleep(20);
    process.kill(pid(1), signal);
    if (signal === "SIGSTOP") {
      while (all(job.output(), /("closed":true)/g).length < 2) await sleep(20);
      process.kill(pid(1), "SIGKILL");
    }
    const { code, output } = await job.ended;
    if (isOpenMpi || signal === "SIGSTOP") {
      const errors = all(output, /"error":(\{[^}]*\})/g).map((text) => JSON.parse(text));
      expect(errors, output).toHaveLength(2);
      for (const error of errors) expect(error).toMatchObject({ name: "RankLostError", rank: 1 });
      expect(all(output, /("closed":true)/g)).toHaveLength(2);
    } else {
      expect(code).not.toBe(0);
    }
    for (const rank of [0, 2]) expect(isRunning(pid(rank))).toBe(false);
    rmSync(pids, { recursive: true });
  });

  it("ends the job with an error when a rank is killed, by default", async () => {
    const kill = [
      "sh",
      "-c",
      `[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && { "$@" & sleep 3; kill -9 $!; kill -9 $$; }; exec "$@"`,
    ];
    const { code } = await start(2, [...kill, "sh", ...program("run-until-failure.ts", "busy")]).ended;
    expect(code).not.toBe(0);
  });
});
