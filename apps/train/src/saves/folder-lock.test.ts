import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { lockFile, lockFolder } from "./folder-lock.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-lock-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, lockFile);

describe("the lock of a folder", () => {
  it("is shared by the ranks of one start, which know the keeper, and refused to another start", async () => {
    using first = await lockFolder(folder, { start: "a", rank: 0 });
    using second = await lockFolder(folder, { start: "a", rank: 3 });
    expect([first.keeper, second.keeper]).toEqual([0, 0]);
    await expect(lockFolder(folder, { start: "b", rank: 0 })).rejects.toThrow(
      `${folder} is in use: process ${process.pid} on `,
    );
  });

  it("ends with its keeper", async () => {
    for (const start of ["a", "b"]) {
      using lock = await lockFolder(folder, { start, rank: 1 });
      expect(lock.keeper).toBe(1);
    }
    expect(readdirSync(folder)).toEqual([]);
  });

  it("does not count after its process has ended, even where another one has its number now", async () => {
    const program = `
      const { lockFolder } = await import(${JSON.stringify(join(import.meta.dirname, "folder-lock.ts"))});
      await lockFolder(${JSON.stringify(folder)}, { start: "old", rank: 0 });
      process.kill(process.pid, "SIGKILL");`;
    const flags = ["--conditions=@terse/source", "--no-warnings", "--input-type=module", "-e", program];
    const child = spawn(process.execPath, flags, { cwd: import.meta.dirname, stdio: "inherit" });
    await new Promise((ended) => child.on("close", ended));
    const old = JSON.parse(readFileSync(path(), "utf8")) as object;
    {
      using lock = await lockFolder(folder, { start: "new", rank: 0 });
      expect(lock.keeper).toBe(0);
    }
    writeFileSync(path(), JSON.stringify({ ...old, pid: process.pid }));
    using lock = await lockFolder(folder, { start: "new", rank: 2 });
    expect(lock.keeper).toBe(2);
    expect(readdirSync(folder)).toEqual([lockFile]);
  });

  it("is waited for where its process is just ending", async () => {
    const program = `
      const { lockFolder } = await import(${JSON.stringify(join(import.meta.dirname, "folder-lock.ts"))});
      await lockFolder(${JSON.stringify(folder)}, { start: "old", rank: 0 });
      console.log("held");
      setTimeout(() => process.kill(process.pid, "SIGKILL"), 300);`;
    const flags = ["--conditions=@terse/source", "--no-warnings", "--input-type=module", "-e", program];
    const child = spawn(process.execPath, flags, { cwd: import.meta.dirname });
    const ended = new Promise((done) => child.on("close", done));
    await new Promise((held) => child.stdout.once("data", held));
    using lock = await lockFolder(folder, { start: "new", rank: 0 });
    expect(lock.keeper).toBe(0);
    await ended;
  });

  it("of another machine counts while it is touched", async () => {
    const other = { start: "there", rank: 0, pid: 1, since: "1", host: "elsewhere", boot: "x" };
    writeFileSync(path(), JSON.stringify(other));
    await expect(lockFolder(folder, { start: "here", rank: 0 })).rejects.toThrow("process 1 on elsewhere");
    utimesSync(path(), new Date(0), new Date(0));
    using lock = await lockFolder(folder, { start: "here", rank: 0 });
    expect(lock.keeper).toBe(0);
  });

  it("that was cut short does not count", async () => {
    writeFileSync(path(), '{"start":');
    using lock = await lockFolder(folder, { start: "a", rank: 0 });
    expect(lock.keeper).toBe(0);
  });

  it("goes to one of several starts that find a stale one", async () => {
    writeFileSync(
      path(),
      JSON.stringify({ start: "old", rank: 0, pid: 2 ** 22 + 1, since: "1", host: "gone", boot: "" }),
    );
    utimesSync(path(), new Date(0), new Date(0));
    const starts = Array.from({ length: 20 }, (_, i) => lockFolder(folder, { start: String(i), rank: 0 }));
    const taken = (await Promise.allSettled(starts)).flatMap((each) =>
      each.status === "fulfilled" ? [each.value] : [],
    );
    expect(taken).toHaveLength(1);
    taken[0]![Symbol.dispose]();
    expect(readdirSync(folder)).toEqual([]);
  });
});
