import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { describe, expect, it } from "vitest";
import { StepFailed } from "./remedy.ts";
import { SetUpFailed, Steps, seconds } from "./steps.ts";
import { scratchFolder } from "./testing/scratch-folder.ts";
import { root } from "./toolchain.ts";

function stage(isTTY: boolean, columns = 60): { folder: string; steps: Steps; shown: () => string } {
  const folder = scratchFolder();
  let text = "";
  const stream = { isTTY, columns, write: (more: string) => (text += more) };
  return { folder, steps: new Steps({ stream, folder, checkout: root }), shown: () => text };
}

describe("Steps", () => {
  it("prints plain lines without a terminal, and keeps no log of success", async () => {
    const { folder, steps, shown } = stage(false);
    expect(await steps.run("thing", "1 MB to fetch", (progress) => progress.run("echo", ["hello"]))).toBe("hello\n");
    expect(shown()).toMatch(/^… thing: 1 MB to fetch\n✓ thing · \d\.\d s\n$/);
    expect(readdirSync(join(folder, "logs"))).toEqual([]);
  });

  it("shows a tool's last line of output on a terminal, within its width", async () => {
    const { steps, shown } = stage(true);
    await steps.run("thing", "", (progress) =>
      progress.run("sh", ["-c", `printf '${"long ".repeat(40)}\\n'; sleep 0.3`]),
    );
    const frames = shown().split("\r\x1b[K");
    expect(frames.some((frame) => frame.includes("long long"))).toBe(true);
    for (const frame of frames) expect(stripVTControlCharacters(frame).trimEnd().length).toBeLessThan(60);
  });

  it.each([
    [20, "⠋ ARM compiler and…"],
    [30, "⠋ ARM compiler and QEMU, for…"],
    [0, "⠋ ARM compiler and QEMU, for tests 0 s  about 60 MB to fetch"],
  ])("shows a line that does not wrap on a terminal of %i columns", async (columns, line) => {
    const { steps, shown } = stage(true, columns);
    await steps.run("ARM compiler and QEMU, for tests", "about 60 MB to fetch", async () => {});
    expect(stripVTControlCharacters(shown().split("\r\x1b[K")[1]!)).toBe(line);
  });

  it("shows the end of a failed tool's output, the remedy, and the log", async () => {
    const { steps, shown } = stage(false);
    const script =
      "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do echo line $i; done; echo 'getaddrinfo ENOTFOUND registry' >&2; exit 7";
    await expect(steps.run("thing", "", (progress) => progress.run("sh", ["-c", script]))).rejects.toThrow(SetUpFailed);
    expect(shown()).toContain("✗ thing");
    expect(shown()).toContain("│ line 12");
    expect(shown()).not.toContain("│ line 5\n");
    expect(shown()).toContain("A package registry cannot be reached");
    const log = /The whole output: (\S+)/.exec(shown())![1]!;
    expect(readFileSync(log, "utf8")).toContain("line 1\n");
  });

  it("shows one line, and no log, for a known failure", async () => {
    const { folder, steps, shown } = stage(false);
    const outcome = await steps.try("thing", "", () =>
      Promise.reject(new StepFailed("no compiler: `sudo apt-get install g++`.")),
    );
    expect(outcome).toEqual({ reason: "no compiler: `sudo apt-get install g++`." });
    expect(shown()).toMatch(/– thing .*\n {2}no compiler: `sudo apt-get install g\+\+`\.\n$/);
    expect(existsSync(join(folder, "logs"))).toBe(false);
  });

  it("shows one of several that run at once, how many others run, and each one's end in lines of its own", async () => {
    const { steps, shown } = stage(true);
    const sleep = (seconds: string) =>
      steps.run(`for ${seconds} s`, "", (progress) => progress.run("sleep", [seconds]));
    const [longer, shorter] = [sleep("0.5"), sleep("0.3")];
    const failing = steps.try("failing", "", async (progress) =>
      progress.run("sh", ["-c", "sleep 0.2; echo no; exit 1"]),
    );
    await Promise.all([longer, shorter, failing]);
    const lines = stripVTControlCharacters(shown().replaceAll("\r\x1b[K", "\n")).split("\n");
    expect(lines.filter((line) => /^[✓–]/.test(line)).map((line) => line.replace(/ · .*/, ""))).toEqual([
      "– failing",
      "✓ for 0.3 s",
      "✓ for 0.5 s",
    ]);
    expect(lines[lines.findIndex((line) => line.startsWith("–")) + 1]).toBe("  │ no");
    const spinner = lines.filter((line) => /^[⠋-⠿]/u.test(line)).map((line) => line.slice(2).trimEnd());
    expect(spinner).toContain("for 0.5 s 0 s, and 2 more");
    expect(spinner.at(-1)).toMatch(/^for 0\.5 s 0 s$/);
    for (const cursor of ["\x1b[?25l", "\x1b[?25h"]) expect(shown().split(cursor)).toHaveLength(2);
  });

  it("names a command that is missing", async () => {
    const { steps, shown } = stage(false);
    const outcome = await steps.try("thing", "", (progress) => progress.run("no-such-command", []));
    expect(outcome).toHaveProperty("reason", "no-such-command: command not found");
    expect(shown()).toContain("no-such-command: command not found");
  });

  it("shows the error even if no log can be written", async () => {
    const folder = scratchFolder();
    writeFileSync(join(folder, "logs"), "a file in the way");
    let shown = "";
    const steps = new Steps({ folder, checkout: root, stream: { write: (more: string) => (shown += more) } });
    await expect(
      steps.run("thing", "", (progress) => progress.run("sh", ["-c", "echo ENOSPC; exit 1"])),
    ).rejects.toThrow(SetUpFailed);
    expect(shown).toContain(`The disk that holds ${folder} is full`);
    expect(shown).not.toContain("The whole output");
  });

  it("writes times with units", () => {
    expect([40, 850, 9949, 9950, 59_400, 75_000].map(seconds)).toEqual([
      "0.0 s",
      "0.8 s",
      "9.9 s",
      "10 s",
      "59 s",
      "1 min 15 s",
    ]);
  });
});
