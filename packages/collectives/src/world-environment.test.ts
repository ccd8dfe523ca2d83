import { describe, expect, it } from "vitest";
import { RendezvousError } from "./errors.ts";
import { readWorldEnvironment } from "./world-environment.ts";

describe("the environment", () => {
  it("is a world of one rank when nothing is set", () => {
    expect(readWorldEnvironment({})).toEqual({
      launcher: undefined,
      rank: 0,
      size: 1,
      localRank: 0,
      localSize: 1,
      token: "",
      epoch: "0",
      rendezvous: undefined,
      master: undefined,
      storeKey: undefined,
      engine: undefined,
      address: undefined,
      emulateLink: undefined,
    });
  });

  it("is read by torchrun's variables", () => {
    const env = {
      RANK: "3",
      WORLD_SIZE: "8",
      LOCAL_RANK: "1",
      LOCAL_WORLD_SIZE: "2",
      MASTER_ADDR: "node0",
      MASTER_PORT: "29500",
    };
    expect(readWorldEnvironment({ ...env, TORCHELASTIC_RESTART_COUNT: "2", TERSE_TOKEN: "t" })).toMatchObject({
      rank: 3,
      size: 8,
      localRank: 1,
      localSize: 2,
      token: "t",
      epoch: "2",
      master: { host: "node0", port: 29500 },
    });
  });

  const openMpi = {
    OMPI_COMM_WORLD_RANK: "1",
    OMPI_COMM_WORLD_SIZE: "4",
    OMPI_COMM_WORLD_LOCAL_RANK: "1",
    OMPI_COMM_WORLD_LOCAL_SIZE: "2",
    PMIX_RANK: "1",
    PMIX_NAMESPACE: "prterun-node0-4711@1",
  };
  const pmi = { PMI_RANK: "1", PMI_SIZE: "4", MPI_LOCALRANKID: "1", MPI_LOCALNRANKS: "2" };
  const slurm = {
    SLURM_JOB_ID: "4711",
    SLURM_STEP_ID: "0",
    SLURM_PROCID: "1",
    SLURM_STEP_NUM_TASKS: "4",
    SLURM_NTASKS: "4",
    SLURM_LOCALID: "1",
    SLURM_STEP_TASKS_PER_NODE: "2(x2)",
    SLURM_JOB_NODELIST: "node[07-12]",
    SLURM_STEP_NODELIST: "node[09-10]",
  };

  it.each([
    ["Open MPI", openMpi],
    ["PMI", pmi],
    ["Slurm", slurm],
  ])("is read by the variables of %s", (launcher, env) => {
    expect(readWorldEnvironment(env)).toMatchObject({ launcher, rank: 1, size: 4, localRank: 1, localSize: 2 });
  });

  it("takes an IPv6 address with brackets and without", () => {
    for (const address of ["fd00::1", "[fd00::1]"])
      expect(
        readWorldEnvironment({ RANK: "0", WORLD_SIZE: "2", MASTER_ADDR: address, MASTER_PORT: "1" }).master,
      ).toEqual({ host: "fd00::1", port: 1 });
  });

  it("uses the variables of the innermost launcher", () => {
    const torchrun = { RANK: "0", WORLD_SIZE: "2", LOCAL_RANK: "0", LOCAL_WORLD_SIZE: "1" };
    const all = { ...slurm, ...pmi, ...openMpi, ...torchrun };
    expect(readWorldEnvironment(all)).toMatchObject({ launcher: "torchrun", rank: 0, size: 2, localRank: 0 });
    const mine = { ...slurm, SLURM_PROCID: "0", SLURM_STEP_NUM_TASKS: "1" }; // one mpirun in a Slurm step
    expect(readWorldEnvironment({ ...mine, ...openMpi })).toMatchObject({ launcher: "Open MPI", rank: 1, size: 4 });
    expect(readWorldEnvironment({ ...mine, ...pmi })).toMatchObject({ launcher: "PMI", rank: 1, size: 4 });
  });

  it("uses Slurm's own variables where srun sets PMI's too", () => {
    const pmi2 = { PMI_FD: "13", PMI_JOBID: "4711.0", PMI_RANK: "1", PMI_SIZE: "4" }; // srun --mpi=pmi2, Slurm 22.05
    const { master, ...rest } = readWorldEnvironment({ ...slurm, ...pmi2 });
    expect(rest).toMatchObject({ launcher: "Slurm", rank: 1, size: 4, localRank: 1, localSize: 2 });
    expect(master?.host).toBe("node09");
    const another = { ...pmi2, PMI_JOBID: "4711.1" }; // of an mpirun in that step
    expect(readWorldEnvironment({ ...slurm, ...another }).launcher).toBe("PMI");
  });

  it("takes rank and size from one launcher, never from two", () => {
    expect(() => readWorldEnvironment({ ...slurm, RANK: "0" })).toThrow(
      "RANK is 0, and WORLD_SIZE is not set (Slurm has set SLURM_PROCID and SLURM_STEP_NUM_TASKS: unset RANK to use those)",
    );
    expect(() => readWorldEnvironment({ OMPI_COMM_WORLD_SIZE: "2" })).toThrow(
      "OMPI_COMM_WORLD_SIZE is 2, and OMPI_COMM_WORLD_RANK is not set",
    );
    expect(() => readWorldEnvironment({ PMIX_RANK: "3" })).toThrow("PMIX_RANK is 3, and WORLD_SIZE is not set");
    expect(() => readWorldEnvironment({ SLURM_STEP_ID: "0", SLURM_PROCID: "3" })).toThrow(
      "SLURM_PROCID is 3, and SLURM_STEP_NUM_TASKS is not set",
    );
    expect(readWorldEnvironment({ RANK: "0" })).toMatchObject({ rank: 0, size: 1 });
  });

  it.each([
    ["4(x2),3", "0", 4],
    ["4(x2),3", "1", 4],
    ["4(x2),3", "2", 3],
    ["5,4(x3)", "1", 4],
    ["2", "7", 2],
  ])("counts the ranks of this node in %s: node %s has %i", (perNode, node, localSize) => {
    const env = { ...slurm, SLURM_STEP_NUM_TASKS: "11", SLURM_STEP_TASKS_PER_NODE: perNode, SLURM_NODEID: node };
    expect(readWorldEnvironment(env)).toMatchObject({ localSize });
  });

  it("is no Slurm rank in the script of a batch job, where SLURM_PROCID is set too", () => {
    const script = { SLURM_JOB_ID: "4711", SLURM_PROCID: "0", SLURM_LOCALID: "0", SLURM_NTASKS: "4" };
    expect(readWorldEnvironment(script)).toMatchObject({ launcher: undefined, rank: 0, size: 1 });
  });

  // As `scontrol show hostnames` of Slurm 22.05 expands them.
  it.each([
    ["node[09-10]", "node09"],
    ["node[3,7-9],login", "node3"],
    ["gpu1,gpu2", "gpu1"],
    ["gpu1", "gpu1"],
    ["rack-2-node[001-016,020]", "rack-2-node001"],
    ["n[01-03,7],login", "n01"],
    ["login,n[01-03,7]", "login"],
    ["r[1-2]n[3-5]", "r1n3"],
  ])("has rank 0 on the first node of a Slurm step: %s", (list, host) => {
    const { master } = readWorldEnvironment({ ...slurm, SLURM_STEP_NODELIST: list });
    expect(master).toMatchObject({ host });
    // All ranks of a step have this port; other steps and jobs have others.
    const other = (more: object) => readWorldEnvironment({ ...slurm, SLURM_PROCID: "3", ...more }).master!.port;
    expect(other({})).toBe(master!.port);
    expect(other({ SLURM_STEP_ID: "1" })).not.toBe(master!.port);
    expect(other({ SLURM_JOB_ID: "4712" })).not.toBe(master!.port);
    expect(master!.port).toBeGreaterThanOrEqual(10000);
    expect(master!.port).toBeLessThan(30000);
  });

  it("has rank 0 on this machine where all ranks are on it", () => {
    const here = { ...slurm, SLURM_STEP_TASKS_PER_NODE: "4" };
    expect(readWorldEnvironment(here).master?.host).toBe("127.0.0.1");
    expect(readWorldEnvironment({ ...here, MASTER_PORT: "4000" }).master).toEqual({ host: "127.0.0.1", port: 4000 });
    const mpirun = { ...openMpi, OMPI_COMM_WORLD_LOCAL_SIZE: "4" };
    expect(readWorldEnvironment(mpirun).master?.host).toBe("127.0.0.1");
    // Two machines, of which no variable names the first.
    expect(readWorldEnvironment(openMpi).master).toBeUndefined();
    expect(readWorldEnvironment({ ...pmi, MASTER_ADDR: "node0", MASTER_PORT: "1" }).master?.host).toBe("node0");
  });

  it("uses the store where torchrun's agent listens at MASTER_PORT itself", () => {
    const env = { RANK: "0", WORLD_SIZE: "2", MASTER_ADDR: "node0", MASTER_PORT: "29500", TORCHELASTIC_RUN_ID: "7" };
    expect(readWorldEnvironment(env).storeKey).toBeUndefined();
    const agent = { ...env, TORCHELASTIC_USE_AGENT_STORE: "True", TORCHELASTIC_RESTART_COUNT: "2" };
    expect(readWorldEnvironment(agent).storeKey).toBe("terse/7/attempt 2");
  });

  it.each([
    ["node0:4000", { host: "node0", port: 4000 }],
    ["[fd00::2]:4000", { host: "fd00::2", port: 4000 }],
  ])("names the launcher's rendezvous: %s", (text, want) => {
    expect(readWorldEnvironment({ TERSE_RENDEZVOUS: text }).rendezvous).toEqual(want);
  });

  it.each([
    [{ RANK: "one" }, 'RANK must be a number from 0 on, and is "one"'],
    [{ RANK: "-1" }, "RANK must be a number"],
    [{ RANK: "2", WORLD_SIZE: "2" }, "RANK is 2 in a world of 2; it must be 0 to 1"],
    [{ WORLD_SIZE: "0" }, "WORLD_SIZE must be 1 or more"],
    [{ WORLD_SIZE: "2" }, "WORLD_SIZE is 2, and RANK is not set"],
    [{ RANK: "2" }, "RANK is 2, and WORLD_SIZE is not set"],
    [{ TERSE_RENDEZVOUS: "node0" }, "TERSE_RENDEZVOUS must be host:port"],
    [{ TERSE_RENDEZVOUS: "fd00::2:4000" }, "TERSE_RENDEZVOUS must be host:port"],
    [{ TERSE_RENDEZVOUS: "node0:70000" }, "TERSE_RENDEZVOUS must be host:port"],
    [{ TERSE_OUTAGE: "long" }, 'TERSE_OUTAGE must be a number of seconds from 0.1 to 3600, and is "long"'],
    [{ TERSE_OUTAGE: "0" }, 'TERSE_OUTAGE must be a number of seconds from 0.1 to 3600, and is "0"'],
    [{ TERSE_EMULATE_LINK: "fast" }, "TERSE_EMULATE_LINK: a link is written like 100mbit or 100mbit,1ms"],
    [{ MASTER_ADDR: "node0", MASTER_PORT: "x" }, "MASTER_PORT must be a number"],
    [{ MASTER_ADDR: "node0", MASTER_PORT: "70000" }, "MASTER_PORT must be 1 to 65535, and is 70000"],
    [{ MASTER_ADDR: "node0", MASTER_PORT: "0" }, "MASTER_PORT must be 1 to 65535, and is 0"],
  ])("is refused when a value is impossible: %j", (env, sentence) => {
    expect(() => readWorldEnvironment(env as NodeJS.ProcessEnv)).toThrow(RendezvousError);
    expect(() => readWorldEnvironment(env as NodeJS.ProcessEnv)).toThrow(sentence);
  });
});
