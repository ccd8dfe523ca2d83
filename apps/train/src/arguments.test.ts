import { availableParallelism } from "node:os";
import { engineNames, readWorldEnvironment } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { readArguments, type TrainArguments, usage } from "./arguments.ts";
import { remarkOnRanks } from "./launcher/flags.ts";

const train = (...argv: string[]) => readArguments(["train", ...argv]) as TrainArguments;

describe("the command line", () => {
  it("takes flags with a space or an equals sign", () => {
    expect(readArguments(["train", "--nproc-per-node", "4", "--recipe=a.yaml"])).toMatchObject({
      nprocPerNode: 4,
      recipe: "a.yaml",
    });
  });

  it("takes keys of the recipe as overrides, with a space or an equals sign", () => {
    expect(train("--optimizer.lr=3e-4", "--seed=7", "--steps", "5").overrides).toEqual([
      "optimizer.lr=3e-4",
      "seed=7",
      "steps=5",
    ]);
  });

  it("turns --data into the recipe's path, with any characters", () => {
    expect(train("--data", 'a b: "c"').overrides).toEqual(['data.path="a b: \\"c\\""']);
  });

  it("says what is wrong with a number, a missing value, and an extra word", () => {
    expect(() => readArguments(["train", "--nproc-per-node", "two"])).toThrow(
      /--nproc-per-node.*whole number from 1 to 1024.*"two"/,
    );
    expect(() => readArguments(["train", "--nproc-per-node", "0"])).toThrow(/from 1 to 1024, got "0"/);
    expect(() => readArguments(["train", "--nproc-per-node", "100000"])).toThrow(/from 1 to 1024/);
    expect(() => train("--rdzv-endpoint", "here:70000")).toThrow(
      '--rdzv-endpoint: expected HOST:PORT, got "here:70000"',
    );
    expect(() => readArguments(["train", "--deadline", "0"])).toThrow(/a number from 1 to 1000000, got "0"/);
    expect(() => readArguments(["train", "--out"])).toThrow(/--out needs a value/);
    expect(() => readArguments(["train", "shakespeare.txt"])).toThrow(/--data PATH/);
    expect(() => readArguments(["train", "--", "shakespeare.txt"])).toThrow(/--data PATH/);
    expect(() => readArguments(["train", "--xyzzy"])).toThrow(/--xyzzy: unknown flag\. See/);
    expect(() => readArguments(["train", "--out", "--steps=3"])).toThrow(/--out needs a value/);
    expect(() => readArguments(["train", "--steps"])).toThrow(/--steps needs a value/);
    expect(() => readArguments(["train", "--modle.preset=nano"])).toThrow(/did you mean --model\.preset/);
    expect(() => readArguments(["train", "--xyzzy=3"])).toThrow(/--xyzzy: unknown flag\. See/);
    expect(() => readArguments(["trian"])).toThrow(/trian: the commands are train, sample and eval/);
  });

  it.each([
    ["--lr=1e-3", "--optimizer.lr"],
    ["--batch-size 8", "--data.batchSize"],
    ["--batchSize=8", "--data.batchSize"],
    ["--epochs=3", "--steps"],
  ])("names, for %s, the key of a recipe that is meant: %s", (words, meant) => {
    expect(() => train(...words.split(" "))).toThrow(`: unknown flag; did you mean ${meant}? See`);
  });

  it("takes the seconds for which a link may be down", () => {
    expect(train("--outage", "20").outage).toBe(20);
    expect(() => train("--outage=0")).toThrow("--outage: expected a number from 0.1 to 3600");
  });

  it("takes a link to emulate, and explains its notation", () => {
    expect(train("--emulate-link", "100mbit,1ms").emulateLink).toBe("100mbit,1ms");
    expect(() => readArguments(["train", "--emulate-link=fast"])).toThrow(
      '--emulate-link: a link is written like 100mbit or 100mbit,1ms (bit, kbit, mbit, gbit per second; us, ms, s), and this is "fast"',
    );
  });

  it("takes a dry run on any number of ranks, and refuses its flags elsewhere", () => {
    const dry = train("--dry-run", "--world-size", "4096", "--link=1gbit,50us", "--flops=50e12");
    expect(dry).toMatchObject({ dryRun: true, worldSize: 4096, link: "1gbit,50us", flops: 50e12 });
    expect(() => train("--world-size=4")).toThrow(/^--world-size is for --dry-run; .* --nproc-per-node/);
    expect(() => train("--link=1gbit")).toThrow(/^--link is for --dry-run; .* --emulate-link/);
    expect(() => train("--flops=1e12")).toThrow(/^--flops is for --dry-run/);
    expect(() => train("--dry-run=yes")).toThrow(/--dry-run takes no value/);
    expect(() => train("--dry-run", "--link=fast")).toThrow(/^--link: a link is written like/);
  });

  it("takes an address for the page, and has one of its own", () => {
    expect(readArguments(["train", "--dashboard", "--steps=5"])).toMatchObject({
      dashboard: { host: "127.0.0.1", port: 8377 },
      overrides: ["steps=5"],
    });
    expect(readArguments(["train", "--dashboard=0.0.0.0:80"])).toMatchObject({
      dashboard: { host: "0.0.0.0", port: 80 },
    });
    expect(readArguments(["train"])).not.toHaveProperty("dashboard");
    expect(() => readArguments(["train", "--dashboard=a:b:c"])).toThrow("--dashboard: expected HOST:PORT");
  });

  it("takes the recipe as a plain word, once", () => {
    expect(train("gpt-small-muon", "--steps=3").recipe).toBe("gpt-small-muon");
    expect(train("own/recipe.yaml").recipe).toBe("own/recipe.yaml");
    expect(() => train("a.yaml", "b.yaml")).toThrow('one plain argument, the recipe, got "a.yaml b.yaml"');
    expect(() => train("a.yaml", "--recipe=b.yaml")).toThrow("one plain argument, the recipe");
  });

  it("takes torchrun's words for several machines, and refuses what does not fit together", () => {
    const own = { nnodes: 1, nodeRank: 0, nprocPerNode: 2, maxRestarts: 0, shutdownTimeout: 120, isLauncher: false };
    expect(train()).toMatchObject(own);
    expect(train("--nnodes=2", "--node-rank=1", "--rdzv-endpoint=[::1]", "--max-restarts=3")).toMatchObject({
      ...own,
      nnodes: 2,
      nodeRank: 1,
      maxRestarts: 3,
      rdzvEndpoint: { host: "::1", port: 29400 },
      isLauncher: true,
    });
    expect(train("--nproc-per-node=cpu").nprocPerNode).toBe(availableParallelism());
    expect(() => train("--nnodes=2")).toThrow(/^--nnodes=2: all machines need the same --rdzv-endpoint HOST:PORT/);
    expect(() => train("--nnodes=1:4")).toThrow(/^--nnodes: expected a number of machines, got "1:4"; .* torchrun/);
    expect(() => train("--node-rank=1")).toThrow("--node-rank=1: must be 0 to 0, for one machine; add --nnodes");
    expect(() => train("--standalone", "--nnodes=2", "--rdzv-endpoint=a")).toThrow(/^--standalone: is for one machine/);
  });

  it("takes what Kubeflow's operators set for torchrun, and lets the command line say otherwise", () => {
    const env = {
      PET_NNODES: "3",
      PET_NODE_RANK: "2",
      PET_NPROC_PER_NODE: "8",
      PET_MASTER_ADDR: "job-master-0",
      PET_MASTER_PORT: "23456",
      RANK: "2",
      WORLD_SIZE: "24",
    };
    const place = { nnodes: 3, nodeRank: 2, nprocPerNode: 8, rdzvEndpoint: { host: "job-master-0", port: 23456 } };
    expect(readArguments(["train"], env)).toMatchObject({ ...place, isLauncher: true });
    expect(readArguments(["train", "--nproc-per-node=1"], env)).toMatchObject({ ...place, nprocPerNode: 1 });
    expect(readArguments(["train"], { ...env, LOCAL_RANK: "0" })).toMatchObject({ isLauncher: false });
    for (const address of ["fd00::1", "[fd00::1]"])
      expect(readArguments(["train"], { ...env, PET_MASTER_ADDR: address })).toMatchObject({
        rdzvEndpoint: { host: "fd00::1", port: 23456 },
      });
    const endpoint = { PET_NNODES: "2", PET_RDZV_ENDPOINT: "a:1", PET_MAX_RESTARTS: "4" };
    expect(readArguments(["train"], endpoint)).toMatchObject({ rdzvEndpoint: { host: "a", port: 1 }, maxRestarts: 4 });
    expect(() => readArguments(["train"], { PET_NODE_RANK: "first" })).toThrow(
      'in the environment, as PET_…: --node-rank: expected a whole number from 0 to 100000, got "first"',
    );
  });

  it("says that --nproc-per-node does not count where another launcher has made the process a rank", () => {
    const remark = (flag: string[], env: NodeJS.ProcessEnv) =>
      remarkOnRanks(readArguments(["train", ...flag], env) as TrainArguments, readWorldEnvironment(env));
    const pod = { RANK: "0", WORLD_SIZE: "2", MASTER_ADDR: "a", MASTER_PORT: "1" };
    expect(remark(["--nproc-per-node=8"], pod)).toBe(
      "--nproc-per-node=8 does not count: the environment has the variables of torchrun's ranks, which make this process rank 0 of 2; to start ranks here, unset them",
    );
    expect(remark(["--nproc-per-node=8"], { ...pod, RANK: "1" })).toBeUndefined(); // said once
    expect(remark(["--nproc-per-node=8"], { ...pod, LOCAL_RANK: "0", LOCAL_WORLD_SIZE: "8" })).toBeUndefined();
    expect(remark([], { ...pod, PET_NPROC_PER_NODE: "8" })).toBeUndefined(); // for torchrun
    expect(remark([], pod)).toBeUndefined();
  });

  it("goes on by --resume auto only where the folder is named, and starts there with all that a start takes", () => {
    expect(() => train("--resume=auto")).toThrow(/^--resume auto: .* name that folder with --out FOLDER$/);
    expect(train("--resume=auto", "--out=a", "--recipe=b", "--init-from=c")).toMatchObject({
      resume: "auto",
      out: "a",
    });
  });

  it("takes the name of an engine", () => {
    expect(train("--engine", "gloo").engine).toBe("gloo");
    expect(train().engine).toBeUndefined();
    expect(() => readArguments(["train", "--engine=smoke"])).toThrow(
      '--engine: expected one of tcp, gloo, mpi, nccl, got "smoke"',
    );
  });

  it("shows help with every flag and engine", () => {
    for (const command of ["train", "sample", "eval"]) expect(readArguments([command, "--help"])).toBe("help");
    for (const flag of [
      "nproc-per-node",
      "recipe",
      "data",
      "out",
      "resume",
      "init-from",
      "nnodes",
      "node-rank",
      "rdzv-endpoint",
      "standalone",
      "max-restarts",
      "log-dir",
      "shutdown-timeout",
      "deadline",
      "engine",
      "world-size",
      "link",
      "flops",
    ])
      expect(usage).toMatch(new RegExp(`  --${flag}[ [\n]`));
    for (const engine of engineNames) expect(usage).toMatch(new RegExp(`--engine NAME .*\\b${engine}\\b`));
  });

  it("knows which flags belong to which command", () => {
    expect(() => readArguments(["train", "--prompt", "x"])).toThrow(/--prompt: unknown flag/);
    expect(() => readArguments(["sample", "--temprature=0"])).toThrow(/did you mean --temperature/);
    expect(() => readArguments(["sample", "a", "b"])).toThrow(/one run.*"b"/);
    expect(() => readArguments(["train", "--resume", "a", "--out", "b"])).toThrow(/exclude each other/);
    expect(() => train("--resume", "a", "--init-from", "b")).toThrow(/--init-from and --resume exclude each other/);
    expect(readArguments(["sample", "some/run", "--seed=3"])).toMatchObject({ run: "some/run", seed: 3 });
  });
});
