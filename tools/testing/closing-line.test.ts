import { describe, expect, it } from "vitest";
import { runTests } from "./run-tests.ts";

describe("the closing line", () => {
  it("counts, and says why tests were skipped", () => {
    // What is skipped here are lines for the reporter to count; no test of this project is among them.
    const { status, lines } = runTests({
      "a.test.ts": `it("one", () => {}); it("two", () => {}); it("three", (test) => test.skip("no GPU here"));`,
      "b.test.ts": `it("four", (test) => test.skip("no GPU here")); describe("five", () => { it.skip("six (needs apt)", () => {}); }); describe.skip("x (skipped: no GPU here)", () => { it("seven", () => {}); });`,
    });
    expect(lines.slice(-3)).toEqual([
      "skipped 3: no GPU here",
      "skipped 1: five > six (needs apt)",
      "2 passed, 0 failed, 4 skipped",
    ]);
    expect(status).toBe(0);
  });

  it("counts a failed test", () => {
    const { status, lines } = runTests({
      "a.test.ts": `it("one", () => {}); it("two", () => { throw new Error("no\\nmore"); });`,
    });
    expect(lines.slice(-2)).toEqual(["failed: a.test.ts > two: no", "1 passed, 1 failed, 0 skipped"]);
    expect(status).toBe(1);
  });

  it("counts a file that does not load and a hook that fails as failures", () => {
    const { status, lines } = runTests({
      "a.test.ts": `throw new Error("does not load");`,
      "b.test.ts": `describe("x", () => { beforeAll(() => { throw new Error("hook"); }); it("one", () => {}); });`,
      "c.test.ts": `it("two", () => {});`,
    });
    expect(lines.filter((line) => line.startsWith("failed: ")).sort()).toEqual([
      "failed: a.test.ts: does not load",
      "failed: b.test.ts > x: hook",
    ]);
    expect(lines.at(-1)).toMatch(/^1 passed, 2 failed, [01] skipped$/);
    expect(status).toBe(1);
  });

  it("counts an uncaught error, and a worker that died", () => {
    const caught = runTests({
      "a.test.ts": `it("one", async () => { setTimeout(() => { throw new Error("late"); }, 0); await new Promise((r) => setTimeout(r, 50)); });`,
    });
    const closing = ["failed: outside the tests: late", "1 passed, 1 failed, 0 skipped"];
    expect([caught.status, caught.lines.slice(-2)]).toEqual([1, closing]);
    const died = runTests({ "a.test.ts": `it("one", () => process.kill(process.pid, "SIGKILL"));` });
    expect(died.status).toBe(1);
    expect(died.lines.at(-1)).toMatch(/^0 passed, [12] failed, 0 skipped$/);
  });
});
