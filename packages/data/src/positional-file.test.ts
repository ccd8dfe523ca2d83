import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import {
  mkdtempSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { DataError } from "./data-error.ts";
import { hashPages, PositionalFile } from "./positional-file.ts";

let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-file-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const bytes = Uint8Array.from({ length: 20_000 }, (_, i) => (i * 7) ^ (i >> 8));

it("reads any stretch", () => {
  writeFileSync(join(folder, "a"), bytes);
  using file = new PositionalFile(join(folder, "a"));
  expect(file.size).toBe(bytes.length);
  for (const [at, count] of [
    [0, 20_000],
    [19_999, 1],
    [5000, 8192],
    [20_000, 0],
  ] as const)
    expect(file.read(at, count)).toEqual(bytes.slice(at, at + count));
});

it("says so where a file was cut short meanwhile, where it is absent, and where it is closed", () => {
  writeFileSync(join(folder, "b"), bytes);
  using file = new PositionalFile(join(folder, "b"));
  truncateSync(join(folder, "b"), 4096);
  expect(() => file.read(4000, 200)).toThrow(DataError);
  expect(() => file.read(8000, 200)).toThrow(/b became shorter while it was read; start again when no other program/);
  file.close();
  expect(() => file.read(0, 1)).toThrow(/Cannot read .*b: it is closed/);
  expect(() => new PositionalFile(join(folder, "no"))).toThrow(/Cannot read .*no: it does not exist; make it readable/);
});

/** How many files of the folder this process has open. */
const opened = () =>
  readdirSync("/proc/self/fd").filter((descriptor) => {
    try {
      return readlinkSync(`/proc/self/fd/${descriptor}`).startsWith(folder);
    } catch {
      return false; // that of reading the list
    }
  }).length;

it.skipIf(process.platform !== "linux")("keeps few of many files open, and reads each of them all the same", () => {
  const paths = Array.from({ length: 300 }, (_, i) => join(folder, `many-${i}`));
  for (const [i, path] of paths.entries()) writeFileSync(path, `file ${i}`);
  const files = paths.map((path) => new PositionalFile(path));
  for (const round of [0, 1])
    for (const [i, file] of files.entries())
      expect(Buffer.from(file.read(round, 6 - round)).toString()).toBe(`file ${i}`.slice(round, 6));
  expect(opened()).toBeGreaterThan(0);
  expect(opened()).toBeLessThanOrEqual(64);
  renameSync(paths[9]!, paths[0]!);
  expect(() => files[0]!.read(0, 1)).toThrow(/many-0 was replaced by another file while it was read; start again/);
  rmSync(paths[1]!);
  expect(() => files[1]!.read(0, 1)).toThrow(/Cannot read .*many-1: it does not exist/);
  for (const file of files) file.close();
  expect(opened()).toBe(0);
});

it.skipIf(process.platform === "win32")("refuses what is no regular file, and does not wait for its content", () => {
  const pipe = join(folder, "pipe");
  execFileSync("mkfifo", [pipe]);
  symlinkSync("pipe", join(folder, "to-pipe"));
  symlinkSync("/dev/zero", join(folder, "to-zero"));
  for (const [name, what] of [
    ["pipe", "a named pipe"],
    ["to-pipe", "a named pipe"],
    ["to-zero", "a device or socket"],
    [".", "a folder"],
  ])
    expect(() => new PositionalFile(join(folder, name!))).toThrow(
      new RegExp(`is ${what} and no regular file; copy its content into a file and name that`),
    );
});

it("hashes all of a small file, and evenly spread pages of a large one", async () => {
  const of = async (size: number, changed = -1) => {
    const hash = createHash("sha256");
    let read = 0;
    await hashPages(hash, size, (at, count) => {
      read += count;
      expect(at + count).toBeLessThanOrEqual(size);
      return new Uint8Array(count).map((_, i) => (at + i === changed ? 1 : 0));
    });
    return { digest: hash.digest("hex"), read };
  };
  for (const size of [0, 1, 4096, 5000, 1024 * 4096])
    for (const changed of [0, size >> 1, size - 1])
      expect((await of(size, changed)).digest === (await of(size)).digest).toBe(size === 0);
  const large = await of(2 ** 33);
  expect(large.read).toBe(1024 * 4096);
  expect((await of(2 ** 33, 2 ** 33 - 1)).digest).not.toBe(large.digest);
  expect((await of(2 ** 33 - 1)).digest).not.toBe(large.digest);
});
