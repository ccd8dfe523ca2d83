import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { type LockHolder, thisProcess } from "@terse/checkpoint";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { FolderTakenError, lockFile, lockFolder } from "./folder-lock.ts";
import type { FromLockThread, LockThreadData } from "./lock-thread.ts";

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
    await new Promise((written) => child.stdout.once("data", written));
    using lock = await lockFolder(folder, { start: "new", rank: 0 });
    expect(lock.keeper).toBe(0);
    await ended;
  });

  it("does not count where nobody has waited for its process, which has ended", async () => {
    // sh ends before it could ask for its child; sleep never does.
    const child = spawn("sh", ["-c", "sh -c 'echo $$; kill -KILL $$' & exec sleep 60"]);
    const pid = Number(String((await once(child.stdout, "data"))[0]));
    await expect.poll(() => readFileSync(`/proc/${pid}/stat`, "utf8")).toMatch(/\) Z /);
    const since = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/.*\) /, "").split(" ")[19]!;
    writeFileSync(path(), JSON.stringify({ ...thisProcess(), start: "old", rank: 0, pid, since }));
    using lock = await lockFolder(folder, { start: "new", rank: 0 });
    expect(lock.keeper).toBe(0);
    child.kill("SIGKILL");
  });

  const elsewhere: [what: string, change: Partial<LockHolder>][] = [
    ["in another PID namespace", { namespace: "pid:[1]" }],
    ["on another machine", { host: "elsewhere", boot: "x" }],
    ["where /proc tells no namespace", { namespace: "" }],
  ];
  it.each(elsewhere)("of a process %s counts while it changes, whatever the clocks say", async (_, change) => {
    const other = { ...thisProcess(), start: "there", rank: 0, pid: 1, since: "1", ...change };
    writeFileSync(path(), JSON.stringify(other));
    utimesSync(path(), new Date(0), new Date(0)); // the other machine's clock is wrong
    const said: string[] = [];
    const asked = lockFolder(folder, { start: "here", rank: 0 }, (why) => {
      said.push(why);
      writeFileSync(path(), JSON.stringify({ ...other, count: 1 }));
    });
    await expect(asked).rejects.toThrow(`process 1 on ${other.host}, in another container or on another machine,`);
    expect(said).toEqual([expect.stringContaining(`is of process 1 on ${other.host}`)]);
  });

  const namespaces: [kind: string, flags: string[]][] = [
    ["PID", ["--pid", "--fork", "--mount-proc"]],
    ["time", ["--time", "--boottime=1000000", "--fork"]], // where processes seem to have begun at other times
  ];
  const title = "is taken by one that runs in another %s namespace only when its process has ended";
  it.for(namespaces)(title, async ([kind, within], context) => {
    const program = `
      const { lockFolder } = await import(${JSON.stringify(join(import.meta.dirname, "folder-lock.ts"))});
      using lock = await lockFolder(${JSON.stringify(folder)}, { start: "other", rank: 0 }, () => console.log("waits"));
      console.log("held");`;
    const node = [
      process.execPath,
      "--conditions=@terse/source",
      "--no-warnings",
      "--input-type=module",
      "-e",
      program,
    ];
    const mayUnshare = spawnSync("unshare", [...within, "true"]).status === 0;
    if (!mayUnshare) return context.skip(`a ${kind} namespace needs root`);
    const start = () => {
      const child = spawn("unshare", [...within, ...node], { cwd: import.meta.dirname });
      let out = "";
      for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (out += data));
      return once(child, "close").then(() => out);
    };
    {
      using _ = await lockFolder(folder, { start: "mine", rank: 0 });
      expect(await start()).toMatch(/^waits\n.*is in use: process/s);
      expect(JSON.parse(readFileSync(path(), "utf8"))).toMatchObject({ start: "mine" });
    }
    // As if a process had been killed.
    writeFileSync(path(), JSON.stringify({ ...thisProcess(), start: "mine", rank: 0 }));
    expect(await start()).toBe("waits\nheld\n");
  });

  it("is missed by a process that was stopped while another start took the folder", async () => {
    using lock = await lockFolder(folder, { start: "mine", rank: 0 });
    expect(() => lock.check()).not.toThrow();
    writeFileSync(path(), JSON.stringify({ ...thisProcess(), start: "other", rank: 0, pid: 77, host: "there" }));
    await expect.poll(() => lock.taken?.message, { timeout: 60_000 }).toContain("process 77 on there took the folder");
    expect(() => lock.check()).toThrow(FolderTakenError);
    expect(JSON.parse(readFileSync(path(), "utf8"))).toMatchObject({ start: "other" });
  });

  it("that was removed is written anew, also where the machine's clock was set an hour on meanwhile", async () => {
    const thread = new URL("./lock-thread.ts", import.meta.url);
    const program = `const { now } = Date;
import(${JSON.stringify(thread.href)}).then(() => { Date.now = () => now() + 3_600_000; });`;
    const mine = { ...thisProcess(), start: "mine", rank: 0 };
    const workerData: LockThreadData = { path: path(), mine, isReleased: new Int32Array(new SharedArrayBuffer(4)) };
    const worker = new Worker(program, { eval: true, workerData });
    const told: FromLockThread[] = [];
    worker.on("message", (message: FromLockThread) => told.push(message));
    try {
      await expect.poll(() => told.length + readdirSync(folder).length, { timeout: 60_000 }).toBe(1);
      expect(told).toEqual([]);
      expect(JSON.parse(readFileSync(path(), "utf8"))).toMatchObject({ start: "mine", count: 1 });
    } finally {
      await worker.terminate();
    }
  });

  it("is refused with a sentence where it cannot be read, and leaves nothing where it cannot be written", async () => {
    mkdirSync(path());
    await expect(lockFolder(folder, { start: "a", rank: 0 })).rejects.toThrow(`Cannot read ${path()}: it is a folder`);
    rmdirSync(path());
    symlinkSync(join(folder, "gone"), path());
    await expect(lockFolder(folder, { start: "a", rank: 0 })).rejects.toThrow(
      `${path()} is a link that leads nowhere: remove it`,
    );
  });

  it("that is stale, in a folder whose files this user may not move, is refused with a sentence", async () => {
    writeFileSync(path(), JSON.stringify({ start: "old", rank: 0, ...thisProcess(), since: "0" }));
    chmodSync(folder, 0o555);
    const root = process.getuid?.() === 0; // root may move every file, so the test changes to the user nobody
    if (root) process.seteuid!(65534);
    try {
      await expect(lockFolder(folder, { start: "b", rank: 0 })).rejects.toThrow(
        /^Cannot write .*lock\.json: permission denied; /,
      );
    } finally {
      if (root) process.seteuid!(0);
      chmodSync(folder, 0o755);
    }
  });

  it("that was cut short does not count", async () => {
    writeFileSync(path(), '{"start":');
    using lock = await lockFolder(folder, { start: "a", rank: 0 });
    expect(lock.keeper).toBe(0);
  });

  it("goes to one of several starts that find a stale one", async () => {
    writeFileSync(path(), JSON.stringify({ ...thisProcess(), start: "old", rank: 0, pid: 2 ** 22 + 1, since: "1" }));
    const starts = Array.from({ length: 20 }, (_, i) => lockFolder(folder, { start: String(i), rank: 0 }));
    const taken = (await Promise.allSettled(starts)).flatMap((each) =>
      each.status === "fulfilled" ? [each.value] : [],
    );
    expect(taken).toHaveLength(1);
    taken[0]![Symbol.dispose]();
    expect(readdirSync(folder)).toEqual([]);
  });
});
