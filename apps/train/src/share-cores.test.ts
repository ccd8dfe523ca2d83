import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, rmdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { loopback } from "@terse/collectives";
import { processorLimits } from "@terse/native-loader";
import { describe, expect, it } from "vitest";
import { type Place, shareCores } from "./share-cores.ts";

const shares = (...places: Place[]) =>
  Promise.all(loopback(places.length).map((group, rank) => shareCores(group, places[rank])));
const on = (machine: string, ...cores: number[]): Place => ({ machine, cores, quotas: [] });
const within = (place: Place, ...quotas: [group: string, processors: number][]): Place => ({
  ...place,
  quotas: quotas.map(([group, processors]) => ({ group, processors })),
});

const program = `
  import { loopback } from "@terse/collectives";
  import { shareCores } from ${JSON.stringify(new URL("share-cores.ts", import.meta.url).href)};
  console.log(await shareCores(loopback(1)[0]));`;
const node = [process.execPath, "--conditions=@terse/source", "--input-type=module", "--eval", program];

describe("the cores of a rank", () => {
  it("are its part of the machine's where all ranks may use all", async () => {
    expect(await shares(on("a", 0, 1, 2, 3), on("a", 0, 1, 2, 3))).toEqual([2, 2]);
    const three = on("a", 0, 1, 2);
    expect(await shares(three, three, three)).toEqual([1, 1, 1]);
    expect(await shares(three, three)).toEqual([1, 1]);
    expect(await shares(on("a", 0), on("a", 0))).toEqual([1, 1]);
  });

  it("are its own where the launcher has bound it, and what ranks share they share", async () => {
    expect(await shares(on("a", 0, 1), on("a", 2, 3))).toEqual([2, 2]);
    const [left, right] = [on("a", 0, 1, 2, 3), on("a", 4, 5)];
    expect(await shares(left, left, right)).toEqual([2, 2, 2]);
  });

  it("are not divided by the ranks of other machines", async () => {
    expect(await shares(on("a", 0, 1), on("b", 0, 1), on("b", 0, 1))).toEqual([2, 1, 1]);
  });

  it("are its part of the quota of its control groups, which it shares with those that are in the same one", async () => {
    const all = on("a", 0, 1, 2, 3, 4, 5, 6, 7);
    expect(await shares(within(all, ["x", 2.5]))).toEqual([2]);
    expect(await shares(within(all, ["x", 0.5]))).toEqual([1]);
    expect(await shares(within(all, ["x", 5]), within(all, ["x", 5]))).toEqual([2, 2]);
    expect(await shares(within(all, ["x", 3]), within(all, ["y", 1]))).toEqual([3, 1]);
    // The pod's quota above those of its containers.
    expect(await shares(within(all, ["x", 4], ["pod", 4]), within(all, ["y", 3], ["pod", 4]))).toEqual([2, 2]);
    expect(await shares(within(on("a", 0), ["x", 4]), within(on("b", 0, 1, 2), ["x", 4]))).toEqual([1, 3]);
  });

  it("are those on which the kernel lets it run", (context) => {
    const { status, stdout, stderr } = spawnSync("taskset", ["--cpu-list", "0", ...node], {
      cwd: import.meta.dirname,
      encoding: "utf8",
    });
    if (status === null || /^taskset: /.test(stderr)) return context.skip("taskset cannot choose core 0 here");
    expect(stdout, stderr).toBe("1\n");
  });

  it("are those of the kernel's quota, also of a group above its own", (context) => {
    const limits = processorLimits();
    if (limits.cores.length < 2 || limits.quotas.length > 0) return context.skip("there is one processor, or a quota");
    const top = existsSync("/sys/fs/cgroup/cgroup.controllers") ? "/sys/fs/cgroup" : "/sys/fs/cgroup/cpu";
    const outer = join(top, `terse-quota-${process.pid}`);
    const inner = join(outer, "inner");
    try {
      try {
        for (const folder of [outer, inner]) mkdirSync(folder); // with `recursive` Node waits for ever where none can be
        if (top.endsWith("cpu")) writeFileSync(join(outer, "cpu.cfs_quota_us"), "100000");
        else writeFileSync(join(outer, "cpu.max"), "100000 100000");
      } catch (error) {
        return context.skip(`no control group can be made here: ${(error as Error).message}`);
      }
      const enter = ["-c", `echo $$ >${inner}/cgroup.procs && exec "$@"`, "sh"];
      const { stdout, stderr } = spawnSync("sh", [...enter, ...node], { cwd: import.meta.dirname, encoding: "utf8" });
      expect(stdout, stderr).toBe("1\n");
      // Operators of a program that never asks for a number of threads take as many, too.
      const operators = 'import { numThreads } from "@terse/tensor"; console.log(numThreads());';
      const { OMP_NUM_THREADS: _, ...env } = process.env;
      const words = [...enter, ...node.slice(0, -1), operators];
      const own = spawnSync("sh", words, { cwd: import.meta.dirname, encoding: "utf8", env });
      expect(own.stdout, own.stderr).toBe("1\n");
    } finally {
      for (const folder of [inner, outer]) if (existsSync(folder)) rmdirSync(folder);
    }
  });
});
