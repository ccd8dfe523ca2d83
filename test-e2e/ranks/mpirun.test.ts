/** Ranks that mpirun starts: the engine mpi between processes, and what becomes of the others when one dies. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type Group, loopback } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { engineContract } from "../../packages/collectives/src/engine-contract/engine-contract.ts";
import { everyCollective } from "./programs/every-collective.ts";
import { RemoteRanks } from "./remote-groups.ts";
import { freePort } from "./start-ranks.ts";

const prefix = process.env["TERSE_MPI"];
const mpirun = prefix ? join(prefix, "bin", "mpirun") : "mpirun";
const version = spawnSync(mpirun, ["--version"], { encoding: "utf8" }).stdout ?? "";
const isOpenMpi = version.includes("Open MPI");
const why = !collectives().hasMpi
  ? `the build found no MPI: ${process.env["TERSE_MPI_MISSING"] ?? "`./terse setup` brings one"}`
  : version === ""
    ? "there is no mpirun"
    : undefined;

// Open MPI leaves the others alone when it is asked to, so that one sees what they say; Hydra ends them.
const recovery = isOpenMpi ? ["--enable-recovery"] : [];

const started: ChildProcess[] = [];
afterAll(() => {
  for (const child of started) child.kill("SIGKILL");
});

interface Job {
  readonly ended: Promise<{ code: number; said: string }>;
  said(): string;
}

/** More ranks than cores, none bound to one; and where the tests run as root, mpirun must be told that this is meant. */
function start(size: number, command: readonly string[], env: NodeJS.ProcessEnv = {}, options: string[] = []): Job {
  const open = ["--oversubscribe", "--bind-to", "none"];
  const child = spawn(mpirun, [...(isOpenMpi ? open : []), ...options, "-n", `${size}`, ...command], {
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
  let said = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      said += text;
    });
  const ended = new Promise<{ code: number; said: string }>((resolve, reject) => {
    child.on("error", reject).on("close", (code) => resolve({ code: code ?? -1, said }));
  });
  return { ended, said: () => said };
}

const program = (name: string, ...args: string[]) => [
  process.execPath,
  "--conditions=@terse/source",
  fileURLToPath(new URL(`programs/${name}`, import.meta.url)),
  ...args,
];
const all = (said: string, pattern: RegExp) => [...said.matchAll(pattern)].map((match) => match[1]!);

describe.skipIf(why !== undefined)(`mpirun${why === undefined ? "" : ` (skipped: ${why})`}`, () => {
  it.each([2, 4])("starts %i ranks that get over mpi what loopback gets, to the last bit and byte", async (size) => {
    const job = start(size, program("every-collective.ts"));
    const groups: Group[] = loopback(size);
    const want = await Promise.all(groups.map(everyCollective));
    await Promise.all(groups.map((group) => group.close()));
    const { code, said } = await job.ended;
    expect(all(said, /\{"digest":"([^"]+)"\}/g).sort(), said).toEqual([...want].sort());
    expect(code).toBe(0);
  });

  describe.each([2, 4])("starts %i ranks that keep the contract of every engine:", (size) => {
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
      await job.ended;
    });
    engineContract("mpi", () => join("mpi"), { sizes: [size] });
  });

  it("starts ranks that meet by MPI itself and need no token, and says nothing of its own", async () => {
    const { code, said } = await start(3, program("join.ts")).ended;
    expect(said.trim().split("\n").sort()).toEqual([0, 1, 2].map((rank) => `{"joined":${rank},"of":3}`));
    expect(code).toBe(0);
  });

  it("starts ranks of one machine that meet by its names alone, for engines that are not MPI's", async () => {
    const port = isOpenMpi ? {} : { MASTER_PORT: `${await freePort()}` };
    const { code, said } = await start(3, program("join.ts"), { TERSE_ENGINE: "tcp", ...port }).ended;
    expect(said.trim().split("\n").sort()).toEqual([0, 1, 2].map((rank) => `{"joined":${rank},"of":3}`));
    expect(code).toBe(0);
  });

  it("starts ranks that find the first one's machine by any of its addresses, where they may be on several", async () => {
    const apart = ["sh", "-c", `OMPI_COMM_WORLD_LOCAL_SIZE=1 MPI_LOCALNRANKS=1 exec "$@"`, "sh"];
    const { code, said } = await start(2, [...apart, ...program("join.ts")]).ended;
    expect(said.trim().split("\n").sort()).toEqual([0, 1].map((rank) => `{"joined":${rank},"of":2}`));
    expect(code).toBe(0);
  });

  it("refuses ranks of several jobs", async () => {
    const { MASTER_PORT } = { MASTER_PORT: `${20000 + (process.pid % 10000)}` };
    const one = (rank: number) =>
      start(1, program("join.ts"), { RANK: `${rank}`, WORLD_SIZE: "2", MASTER_ADDR: "127.0.0.1", MASTER_PORT }).ended;
    const outcomes = await Promise.all([one(0), one(1)]);
    const said = outcomes.map((each) => each.said).join("");
    expect(said).toMatch(/rank [01] belongs to another MPI job; start all ranks with one mpirun/);
    expect(outcomes.every(({ code }) => code !== 0)).toBe(true);
  });

  it("names a rank that does not join, and waits no longer than its deadline", async () => {
    const absent = ["sh", "-c", `[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && exec sleep 8; exec "$@"`, "sh"];
    const { code, said } = await start(2, [...absent, ...program("join.ts", "2")]).ended;
    expect(said).toContain("MPI did not start in time: every process of the job must join, and one has not");
    expect(code).not.toBe(0);
  });

  it.each([
    ["allReduce f32 10", "allReduce f32 11", /rank \d has 1[01] f32 where rank \d has 1[01] f32/],
    ["allReduce f32 3000000", "allReduce i32 3000000", /rank \d has 3000000 [fi]32 where rank \d has 3000000 [fi]32/],
    ["allReduce f32 3000000", "allGather f32 3000000", /is in all-(gather|reduce) number 1 while rank \d is in all-/],
  ])("ends all ranks with one error when they do not agree: %s, and %s", async (usual, odd, sentence) => {
    const { said } = await start(3, program("mismatched-calls.ts", usual, odd), {}, recovery).ended;
    const errors = all(said, /"error":(\{[^}]*\})/g).map((text) => JSON.parse(text));
    if (isOpenMpi) expect(errors, said).toHaveLength(3);
    for (const error of errors) expect(error).toEqual(errors[0]);
    expect(errors[0]).toMatchObject({ name: "CollectiveError", reason: "mismatch" });
    expect(errors[0].message).toMatch(sentence);
  });

  it.each([
    ["busy", "SIGKILL"],
    ["idle", "SIGKILL"],
    ["busy", "SIGSTOP"],
  ] as const)("ends all ranks when one gets, while they are %s, a %s", async (mode, signal) => {
    const pids = mkdtempSync(join(tmpdir(), "terse-mpirun-pids-"));
    const write = ["sh", "-c", `echo $$ >${pids}/"$OMPI_COMM_WORLD_RANK$PMI_RANK"; exec "$@"`, "sh"];
    const job = start(3, [...write, ...program("run-until-failure.ts", mode)], {}, recovery);
    const pid = (rank: number) => Number(readFileSync(join(pids, `${rank}`), "utf8"));
    while (all(job.said(), /("ready")/g).length < 3) await sleep(20);
    process.kill(pid(1), signal);
    if (signal === "SIGSTOP") {
      while (all(job.said(), /("closed":true)/g).length < 2) await sleep(20);
      process.kill(pid(1), "SIGKILL");
    }
    const { code, said } = await job.ended;
    if (isOpenMpi || signal === "SIGSTOP") {
      const errors = all(said, /"error":(\{[^}]*\})/g).map((text) => JSON.parse(text));
      expect(errors, said).toHaveLength(2);
      for (const error of errors) expect(error).toMatchObject({ name: "RankLostError", rank: 1 });
      expect(all(said, /("closed":true)/g)).toHaveLength(2);
    } else {
      expect(code).not.toBe(0);
    }
    for (const rank of [0, 2]) expect(existsSync(`/proc/${pid(rank)}`)).toBe(false);
    rmSync(pids, { recursive: true });
  });

  it("ends with an error, as mpirun itself sees to, when one is killed and nothing is recovered", async () => {
    const kill = [
      "sh",
      "-c",
      `[ "$OMPI_COMM_WORLD_RANK$PMI_RANK" = 1 ] && { "$@" & sleep 3; kill -9 $!; kill -9 $$; }; exec "$@"`,
    ];
    const { code } = await start(2, [...kill, "sh", ...program("run-until-failure.ts", "busy")]).ended;
    expect(code).not.toBe(0);
  });
});
