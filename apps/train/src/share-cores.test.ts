import { spawnSync } from "node:child_process";
import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Place, shareCores } from "./share-cores.ts";

const shares = (...places: Place[]) =>
  Promise.all(loopback(places.length).map((group, rank) => shareCores(group, places[rank])));
const on = (machine: string, ...cores: number[]): Place => ({ machine, cores });

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

  it("are those on which the kernel lets it run", (context) => {
    const program = `
      import { loopback } from "@terse/collectives";
      import { shareCores } from ${JSON.stringify(new URL("share-cores.ts", import.meta.url).href)};
      console.log(await shareCores(loopback(1)[0]));`;
    const node = [process.execPath, "--conditions=@terse/source", "--input-type=module", "--eval", program];
    const { status, stdout, stderr } = spawnSync("taskset", ["--cpu-list", "0", ...node], {
      cwd: import.meta.dirname,
      encoding: "utf8",
    });
    if (status === null || /^taskset: /.test(stderr)) return context.skip("taskset cannot choose core 0 here");
    expect(stdout, stderr).toBe("1\n");
  });
});
