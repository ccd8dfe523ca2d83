/**
 * Ranks that other launchers start: by the launcher itself where it is installed, else with the variables that it sets.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { availableParallelism, hostname, networkInterfaces } from "node:os";
import { fileURLToPath } from "node:url";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { engines } from "./faulty-network.ts";
import { ShortTraining } from "./short-training.ts";
import { type Slurm, slurmObstacle, startSlurm } from "./slurm.ts";
import { freePort } from "./start-ranks.ts";

const python = process.env["TERSE_PYTHON"] ?? "";
const why = process.env["TERSE_PYTHON_MISSING"] ?? "TERSE_PYTHON is not set; ./terse test sets it";
const node = [process.execPath, ...nodeFlags, fileURLToPath(new URL("programs/join.ts", import.meta.url))];
const started: ChildProcess[] = [];
afterEach(() => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
});

/** Without the variables of a launcher that started the tests. */
function cleanEnvironment(): NodeJS.ProcessEnv {
  const names = /^(RANK|WORLD_SIZE|LOCAL_|MASTER_|OMPI_|PMI|MPI_|SLURM_|TORCHELASTIC_|TERSE_(TOKEN|RENDEZVOUS|EPOCH))/;
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !names.test(name)));
}

/** Runs a command; kills it as soon as `isEnough`. */
async function run(
  command: readonly string[],
  env: NodeJS.ProcessEnv = {},
  isEnough: () => boolean = () => false,
): Promise<{ code: number; output: string }> {
  const [file, ...args] = command;
  const child = spawn(file!, args, {
    env: { ...cleanEnvironment(), OMP_NUM_THREADS: "1", ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  started.push(child);
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  const watch = setInterval(() => isEnough() && child.kill("SIGKILL"), 100);
  const code = await new Promise<number>((resolve) => child.on("close", (status) => resolve(status ?? -1)));
  clearInterval(watch);
  return { code, output };
}

const joined = (output: string) =>
  [...output.matchAll(/\{"joined":(\d+),"of":(\d+)\}/g)].map(([, rank, size]) => `${rank} of ${size}`).sort();

const training = new ShortTraining();
/** The weights after ./terse train has started two ranks over tcp by itself. */
let expected: Promise<string> | undefined;
const expectedWeights = () =>
  (expected ??= run(training.command("expected")).then(({ output }) => {
    expect(output).toContain("2 ranks over tcp");
    return training.weights("expected");
  }));
afterAll(() => training[Symbol.dispose]());

describe.skipIf(!python)(`torchrun${python ? "" : ` (skipped: ${why})`}`, () => {
  const torchrun = (...options: string[]) => [python, "-m", "torch.distributed.run", "--no-python", ...options];

  it("starts ranks that find each other by the agent's store", async () => {
    const { code, output } = await run([...torchrun("--standalone", "--nproc-per-node=2"), ...node]);
    expect(joined(output), output).toEqual(["0 of 2", "1 of 2"]);
    expect(code).toBe(0);
  });

  it("starts the ranks of ./terse train, which end with the same weights", async () => {
    const command = training.command("torchrun");
    const { code, output } = await run([...torchrun("--standalone", "--nproc-per-node=2"), ...command]);
    expect(code, output).toBe(0);
    expect(output).toContain("2 ranks over tcp");
    expect(training.weights("torchrun")).toBe(await expectedWeights());
  });

  it("starts two programs one after the other, whose worlds stay apart", async () => {
    const twice = ["sh", "-c", `"$@" && "$@"`, "sh", ...node];
    const { code, output } = await run([...torchrun("--standalone", "--nproc-per-node=2"), ...twice]);
    expect(joined(output), output).toEqual(["0 of 2", "0 of 2", "1 of 2", "1 of 2"]);
    expect(code).toBe(0);
  });

  it("restarts all ranks when one fails, and they join again", async () => {
    const program = fileURLToPath(new URL("programs/fail-once.ts", import.meta.url));
    const { code, output } = await run([
      ...torchrun("--standalone", "--nproc-per-node=2", "--max-restarts=1"),
      ...[process.execPath, ...nodeFlags, program],
    ]);
    expect(output).not.toContain('"attempt":"0"');
    for (const rank of [0, 1]) expect(output).toContain(JSON.stringify({ attempt: "1", rank, sum: 2 }));
    expect(code).toBe(0);
  });

  it("starts one agent per machine, whose ranks join at the agent's address", async (context) => {
    const outside = Object.values(networkInterfaces())
      .flat()
      .find((each) => each?.family === "IPv4" && !each.internal)?.address;
    if (!outside) return context.skip("this machine has only loopback addresses");
    const endpoint = `--rdzv-endpoint=localhost:${await freePort()}`;
    const options = ["--nnodes=2", "--rdzv-backend=c10d", endpoint, `--local-addr=${outside}`, "--nproc-per-node=1"];
    const agent = () => run([...torchrun(...options), ...node], { TERSE_TOKEN: "a secret" });
    const output = (await Promise.all([agent(), agent()])).map((each) => each.output).join("");
    expect(joined(output), output).toEqual(["0 of 2", "1 of 2"]);
  });
});

/** Arguments of a training that lasts long enough to measure what it writes down beside its threads. */
const withThreads = ["--steps=50", "--logEvery=50", "--model.width=16", "--model.layers=1", "--model.heads=1"];
/** The threads of rank 0 in such a training, which it writes before it takes half a minute for its advice. */
const threadsOf = (name: string) =>
  training.metrics(name).flatMap(({ network }) => (network as { threads: number } | undefined)?.threads ?? []);
const hasThreads = (name: string) => {
  try {
    return threadsOf(name).length > 0;
  } catch {
    return false; // there is no file yet, or it is being written
  }
};
const halfOfTheCores = Math.max(1, Math.floor(availableParallelism() / 2));

const noSlurm = slurmObstacle();
describe.skipIf(noSlurm !== undefined)(`srun${noSlurm ? ` (skipped: ${noSlurm})` : ""}`, () => {
  let slurm: Slurm | undefined;
  let refusal = ""; // why Slurm does not start on this machine
  beforeAll(async () => {
    slurm = await startSlurm().catch((error: Error) => {
      refusal = error.message;
      return undefined;
    });
  });
  afterAll(() => slurm?.[Symbol.asyncDispose]());

  it.for(["none", "pmi2", "pmix"])("starts ranks that find each other, with --mpi=%s", async (mpi, context) => {
    if (!slurm) return context.skip(refusal);
    if (!slurm.interfaces.includes(mpi)) return context.skip(`this Slurm has no ${mpi}`);
    const { code, output } = await run([...slurm.command("srun", "-n", "2", `--mpi=${mpi}`), ...node], slurm.env);
    if (output.includes("Unable to load any plugin")) return context.skip(`this Slurm's ${mpi} does not load`);
    expect(joined(output), output).toEqual(["0 of 2", "1 of 2"]);
    expect(code).toBe(0);
  });

  it("starts the ranks of ./terse train, which end with the same weights", async (context) => {
    if (!slurm) return context.skip(refusal);
    const { code, output } = await run([...slurm.command("srun", "-n", "2"), ...training.command("srun")], slurm.env);
    expect(code, output).toBe(0);
    expect(output).toContain("2 ranks over tcp");
    expect(training.weights("srun")).toBe(await expectedWeights());
  });

  it("starts ranks that share the cores where it binds none", async (context) => {
    if (!slurm) return context.skip(refusal);
    const command = [...slurm.command("srun", "-n", "2"), ...training.command("shared", ...withThreads)];
    const { code, output } = await run(command, { ...slurm.env, OMP_NUM_THREADS: undefined });
    expect(code, output).toBe(0);
    expect(threadsOf("shared")).toEqual([halfOfTheCores]);
  });

  it("starts two steps at the same time, whose worlds stay apart", async (context) => {
    if (!slurm) return context.skip(refusal);
    const [srun, ...words] = slurm.command("srun", "-n", "2", "--overlap");
    const steps = ["sh", "-c", `${srun} ${words.join(" ")} "$@" & "$@"; ${srun} ${words.join(" ")} "$@"; wait`, "sh"];
    const { code, output } = await run([...slurm.command("salloc", "-n", "2"), ...steps, ...node], slurm.env);
    // A process in the allocation itself is no rank of a step.
    expect(joined(output), output).toEqual(["0 of 1", "0 of 2", "0 of 2", "1 of 2", "1 of 2"]);
    expect(code).toBe(0);
  });
});

describe("srun's variables", () => {
  // The variables of srun(1) in a task of step 0 of a job, on one node.
  const task = (rank: number, job: number): NodeJS.ProcessEnv => ({
    SLURM_JOB_ID: `${job}`,
    SLURM_JOBID: `${job}`,
    SLURM_STEP_ID: "0",
    SLURM_STEPID: "0",
    SLURM_PROCID: `${rank}`,
    SLURM_LOCALID: `${rank}`,
    SLURM_NODEID: "0",
    SLURM_NTASKS: "2",
    SLURM_NPROCS: "2",
    SLURM_STEP_NUM_TASKS: "2",
    SLURM_STEP_TASKS_PER_NODE: "2",
    SLURM_STEP_NUM_NODES: "1",
    SLURM_NODELIST: hostname(),
    SLURM_JOB_NODELIST: hostname(),
    SLURM_STEP_NODELIST: hostname(),
    SLURM_LAUNCH_NODE_IPADDR: "127.0.0.1",
  });

  it("suffice for ranks to find each other", async () => {
    const outcomes = await Promise.all([0, 1].map((rank) => run(node, task(rank, process.pid))));
    const output = outcomes.map((each) => each.output).join("");
    expect(joined(output), output).toEqual(["0 of 2", "1 of 2"]);
  });

  it("make rank 0 require a token where the step has several nodes", async () => {
    const two = { SLURM_STEP_TASKS_PER_NODE: "1(x2)", SLURM_STEP_NODELIST: `${hostname()},elsewhere` };
    const { code, output } = await run(node, { ...task(0, process.pid), ...two });
    expect(output).toMatch(/would listen on \S+ without a token; set TERSE_TOKEN to the same secret for all ranks/);
    expect(code).toBe(1);
  });
});

describe("./terse train", () => {
  it.skipIf(!engines.includes("gloo"))("starts ranks over gloo, which end with the same weights", async () => {
    const { code, output } = await run(training.command("gloo", "--engine=gloo"));
    expect(code, output).toBe(0);
    expect(output).toContain("2 ranks over gloo");
    expect(training.weights("gloo")).toBe(await expectedWeights());
  });

  it("takes the ranks of a host from the launcher for the vote hierarchical", async () => {
    const votes = (vote: string) => training.command(vote, "--recipe=gpt-small-lion-cub", `--exchange.vote=${vote}`);
    const [hierarchical, allToAll] = [await run(votes("hierarchical")), await run(votes("all-to-all"))];
    expect([hierarchical.code, allToAll.code], hierarchical.output).toEqual([0, 0]);
    // The ranks share one host, whose majority is that of all ranks.
    expect(training.weights("hierarchical")).toBe(training.weights("all-to-all"));
  });

  /** Two ranks that are started by hand. */
  const byHand = async (commands: readonly string[][], env: NodeJS.ProcessEnv = {}, isEnough?: () => boolean) => {
    const world = { WORLD_SIZE: "2", MASTER_ADDR: "127.0.0.1", MASTER_PORT: `${await freePort()}` };
    return Promise.all(commands.map((command, rank) => run(command, { ...world, RANK: `${rank}`, ...env }, isEnough)));
  };

  it("shares the cores out among ranks that are started by hand, unless OMP_NUM_THREADS says otherwise", async () => {
    const threads = async (name: string, OMP_NUM_THREADS: string | undefined) => {
      const command = training.command(name, ...withThreads);
      const outcomes = await byHand([command, command], { OMP_NUM_THREADS }, () => hasThreads(name));
      expect(hasThreads(name), outcomes.map(({ output }) => output).join("")).toBe(true);
      return threadsOf(name);
    };
    expect(await threads("by-hand", undefined)).toEqual([halfOfTheCores]);
    expect(await threads("two", "2")).toEqual([2]);
  });

  it("ends all ranks, and names the keys, where their recipes differ", async () => {
    const rank = (...more: string[]) => training.command("differ", "--recipe=gpt-small-lion-cub", ...more);
    const outcomes = await byHand([rank("--optimizer.lr=5e-4"), rank("--optimizer.lr=1e-3", "--optimizer.zero=plus")]);
    for (const { code, output } of outcomes) {
      expect(code).toBe(1);
      expect(output).toContain("optimizer.lr: rank 1 has 0.001, and rank 0 has 0.0005");
      expect(output).toContain('optimizer.zero: rank 1 has "plus", and rank 0 has no value');
    }
  });
});
