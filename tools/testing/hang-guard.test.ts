import { describe, expect, it } from "vitest";
import { runTests } from "./run-tests.ts";

const patience = { TERSE_TEST_PATIENCE: "3" };

describe("the guard against hangs", () => {
  it("ends a file whose thread is blocked by a loop, and shows the loop", () => {
    const { status, lines, errors } = runTests(
      {
        "a.test.ts": `it("loops", () => { function spin() { for (;;); } spin(); });`,
        "b.test.ts": `it("two", () => {});`,
      },
      patience,
    );
    expect(errors).toMatch(
      /HANGS: .*a\.test\.ts has had no result for 3 s\n +process \d+: test .*a\.test\.ts: loops\n/,
    );
    expect(errors).toMatch(/at spin .*a\.test\.ts:\d/);
    expect(lines.at(-1)).toMatch(/^1 passed, [1-3] failed, 0 skipped$/);
    expect(status).toBe(1);
  });

  it("ends a file that waits for a command, and names the command", () => {
    const text = `import { spawnSync } from "node:child_process"; it("waits", () => void spawnSync("sleep", ["1000"]));`;
    const { status, errors } = runTests({ "a.test.ts": text }, patience);
    expect(errors).toMatch(/a\.test\.ts: waits\n/);
    expect(errors).toMatch(/process \d+: sleep 1000\n/);
    expect(status).toBe(1);
  });

  it("ends a process that a test has left behind and that holds the output open", () => {
    const spawn = `spawn("sleep", ["1000"], { stdio: "inherit", detached: true }).unref()`;
    const text = `import { spawn } from "node:child_process"; it("starts", () => void ${spawn});`;
    const { status, errors } = runTests({ "a.test.ts": text }, patience);
    expect(errors).toMatch(/HANGS: 3 s after the last test[\s\S]*process \d+: sleep 1000\n/);
    expect(status).toBe(1);
  });
});
