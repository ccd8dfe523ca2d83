import { describe, expect, it } from "vitest";
import { farMachineObstacle, runBesideFarMachine } from "./far-machine.ts";

const why = farMachineObstacle();

describe.skipIf(why !== undefined)(`a rendezvous that is far away${why ? ` (skipped: ${why})` : ""}`, () => {
  it("keeps its ranks while they are idle: a round trip of 0.9 s", () => {
    const { stdout, stderr } = runBesideFarMachine("far-rendezvous.ts", 450);
    expect(stdout, stderr).not.toBe("");
    expect(JSON.parse(stdout)).toEqual({ sums: [2, 2] });
  });
});
