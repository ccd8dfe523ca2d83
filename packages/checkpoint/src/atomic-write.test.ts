import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { atomicWrite, atomicWriteText, writeAll } from "./atomic-write.ts";
import { CheckpointError } from "./checkpoint-error.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-atomic-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** A program that writes 1 MiB to the file `path` and prints the error's class and message. */
const saveOneMebibyte = (path: string) => `
  import { atomicWrite, writeAll } from ${JSON.stringify(join(import.meta.dirname, "atomic-write.ts"))};
  try {
    await atomicWrite(${JSON.stringify(path)}, (file) => writeAll(file, new Uint8Array(1 << 20)));
    console.log("written");
  } catch (error) { console.log(error.name + ": " + error.message); }`;
const node = [process.execPath, "--conditions=@terse/source", "--no-warnings", "--input-type=module", "-e"];

describe("atomicWrite", () => {
  it("creates a file, and replaces one, and leaves no other file", async () => {
    const path = join(folder, "config.json");
    await atomicWriteText(path, "first");
    await atomicWriteText(path, "zweiter ☃");
    expect(readFileSync(path, "utf8")).toBe("zweiter ☃");
    expect(readdirSync(folder)).toEqual(["config.json"]);
  });

  it("keeps the old content until the new one is complete", async () => {
    const path = join(folder, "a");
    writeFileSync(path, "old");
    await atomicWrite(path, async (file) => {
      await writeAll(file, Buffer.from("ne"));
      expect(readFileSync(path, "utf8")).toBe("old");
      expect(readdirSync(folder).length).toBe(2);
      await writeAll(file, Buffer.from("w"));
    });
    expect(readFileSync(path, "utf8")).toBe("new");
  });

  it("changes nothing when the writer fails, and passes its error on", async () => {
    const path = join(folder, "a");
    writeFileSync(path, "old");
    const failure = new TypeError("the tensor was disposed");
    await expect(
      atomicWrite(path, async (file) => {
        await writeAll(file, Buffer.from("half"));
        throw failure;
      }),
    ).rejects.toBe(failure);
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  it.each([
    ["ENOSPC", "no space is left on its disk; free some and save again"],
    ["EDQUOT", "your disk quota is used up; free some and save again"],
    ["EROFS", "its disk is read-only; choose another folder, or copy this one to another disk"],
  ])("describes %s and removes the temporary file", async (code, words) => {
    const path = join(folder, "a");
    const failing = atomicWrite(path, async (file) => {
      await writeAll(file, Buffer.from("half"));
      throw Object.assign(new Error(`${code}: write`), { code });
    });
    await expect(failing).rejects.toThrow(
      new CheckpointError(`Cannot write ${path}: ${words}. The file is as it was before.`),
    );
    expect(readdirSync(folder)).toEqual([]);
  });

  it("removes the temporary file when the path is a folder", async () => {
    const path = join(folder, "a");
    mkdirSync(join(path, "inside"), { recursive: true });
    await expect(atomicWriteText(path, "x")).rejects.toThrow(/^Cannot write .*a: it is a folder; name a file\./);
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  it("reports a folder that does not exist", async () => {
    await expect(atomicWriteText(join(folder, "no/a"), "x")).rejects.toThrow(/: it does not exist; check the path\./);
  });

  it("accepts the longest name that the file system accepts", async () => {
    const name = "x".repeat(255);
    await atomicWriteText(join(folder, name), "long");
    expect(readdirSync(folder)).toEqual([name]);
  });

  it("leaves the complete content of one writer when several write the same file", async () => {
    const path = join(folder, "a");
    const texts = Array.from({ length: 20 }, (_, i) => String(i).repeat(10_000));
    await Promise.all(texts.map((text) => atomicWriteText(path, text)));
    expect(texts).toContain(readFileSync(path, "utf8"));
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  it.skipIf(process.platform === "win32")("reports the limit on file size and keeps the old file", () => {
    const path = join(folder, "a");
    writeFileSync(path, "old");
    const limited = ["-c", 'ulimit -f 100; exec "$@"', "sh", ...node, saveOneMebibyte(path)];
    expect(execFileSync("sh", limited, { encoding: "utf8" })).toBe(
      `CheckpointError: Cannot write ${path}: it would be larger than the limit on file size; raise the limit (ulimit -f) or choose another folder. The file is as it was before.\n`,
    );
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(folder)).toEqual(["a"]);
  });

  // A disk of 64 KiB in a mount namespace. Needs root, or a kernel that gives users namespaces.
  const namespaced = (script: string) => ["-rm", "sh", "-ec", `mount -t tmpfs -o size=64k none ${folder}; ${script}`];
  const canMount = spawnSync("unshare", ["-rm", "mount", "-t", "tmpfs", "none", tmpdir()]).status === 0;
  it.skipIf(!canMount)("reports a full disk and keeps the old file (skipped without the right to mount)", () => {
    const path = join(folder, "a");
    const [command, ...rest] = node;
    const quoted = [command!, ...rest, saveOneMebibyte(path)]
      .map((word) => `'${word.replaceAll("'", "'\\''")}'`)
      .join(" ");
    const script = `echo old > ${path}; ${quoted}; cat ${path}; ls -A ${folder}`;
    expect(execFileSync("unshare", namespaced(script), { encoding: "utf8" })).toBe(
      `CheckpointError: Cannot write ${path}: no space is left on its disk; free some and save again. The file is as it was before.\nold\na\n`,
    );
  });
});

describe("writeAll", () => {
  it("writes every byte of a view, in several system calls", async () => {
    const numbers = Float64Array.of(1, 2, 3, 4).subarray(1, 3);
    for (const largest of [1, 7, 16, 1 << 30]) {
      const path = join(folder, `view-${largest}`);
      await using file: FileHandle = await open(path, "w");
      await writeAll(file, numbers, largest);
      await file.sync();
      expect(readFileSync(path)).toEqual(Buffer.from(Float64Array.of(2, 3).buffer));
    }
  });
});
