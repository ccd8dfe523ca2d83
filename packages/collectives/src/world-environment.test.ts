import { describe, expect, it } from "vitest";
import { RendezvousError } from "./errors.ts";
import { readWorldEnvironment } from "./world-environment.ts";

describe("the environment", () => {
  it("is a world of one when nothing is set", () => {
    expect(readWorldEnvironment({})).toEqual({
      rank: 0,
      size: 1,
      localRank: 0,
      localSize: 1,
      token: "",
      epoch: "0",
      rendezvous: undefined,
      master: undefined,
      address: undefined,
      emulateLink: undefined,
    });
  });

  it("is read by torchrun's names", () => {
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

  it.each([
    ["Open MPI", { OMPI_COMM_WORLD_RANK: "1", OMPI_COMM_WORLD_SIZE: "4", OMPI_COMM_WORLD_LOCAL_RANK: "1" }],
    ["PMI", { PMI_RANK: "1", PMI_SIZE: "4", MPI_LOCALRANKID: "1" }],
    ["Slurm", { SLURM_PROCID: "1", SLURM_NTASKS: "4", SLURM_LOCALID: "1" }],
  ])("is read by the names of %s", (_, env) => {
    expect(readWorldEnvironment(env)).toMatchObject({ rank: 1, size: 4, localRank: 1 });
    expect(readWorldEnvironment({ ...env, RANK: "0", WORLD_SIZE: "2" })).toMatchObject({ rank: 0, size: 2 });
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
    [{ TERSE_EMULATE_LINK: "fast" }, "TERSE_EMULATE_LINK: a link is written like 100mbit or 100mbit,1ms"],
    [{ MASTER_ADDR: "node0", MASTER_PORT: "x" }, "MASTER_PORT must be a number"],
  ])("is refused when it makes no sense: %j", (env, sentence) => {
    expect(() => readWorldEnvironment(env as NodeJS.ProcessEnv)).toThrow(RendezvousError);
    expect(() => readWorldEnvironment(env as NodeJS.ProcessEnv)).toThrow(sentence);
  });
});
