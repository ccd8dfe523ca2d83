import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AppendedFile } from "./appended-file.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-appended-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const path = () => join(folder, "disk", "file");
function opened(mostBytes?: number) {
  const said: string[] = [];
  const limit = mostBytes === undefined ? {} : { mostBytes };
  return { said, file: new AppendedFile({ path: path(), piece: "line", say: (text) => said.push(text), ...limit }) };
}

describe("a file that a run appends to", () => {
  it("keeps what its disk does not take, says so once, and writes it later", () => {
    const { file, said } = opened();
    for (const line of ["a\n", "b\n"]) file.append(line); // the folder is away
    mkdirSync(join(folder, "disk"));
    for (const line of ["c\n", "d\n"]) file.append(line);
    file[Symbol.dispose]();
    expect(readFileSync(path(), "utf8")).toBe("a\nb\nc\nd\n");
    expect(said).toEqual([
      `${path()} cannot be written: it does not exist; check the path; the run goes on, keeps its lines in memory and tries again`,
      `${path()} is written again and lacks nothing`,
    ]);
  });

  it("begins on a line of its own where another process has left half a line", () => {
    mkdirSync(join(folder, "disk"));
    writeFileSync(path(), "a\nhalf");
    const { file } = opened();
    file.append(""); // opens it, and adds no line
    for (const line of ["b\n", "c\n"]) file.append(line);
    expect(readFileSync(path(), "utf8")).toBe("a\nhalf\nb\nc\n");
    opened().file.append("d\n");
    expect(readFileSync(path(), "utf8")).toBe("a\nhalf\nb\nc\nd\n");
  });

  it("says at the end what is lost", () => {
    const { file, said } = opened();
    file.append("a\n");
    file[Symbol.dispose]();
    expect(said.at(-1)).toBe(`${path()}: 1 line could not be kept: it does not exist; check the path`);
  });

  it("keeps so many bytes, the newest, and says how many lines it lacks", () => {
    const { file, said } = opened(6);
    for (const line of ["1\n", "2\n", "3\n", "4\n", "5\n"]) file.append(line);
    mkdirSync(join(folder, "disk"));
    file.append("6\n");
    expect(readFileSync(path(), "utf8")).toBe("3\n4\n5\n6\n");
    expect(said.at(-1)).toBe(`${path()} is written again; 2 lines could not be kept`);
  });

  it("of a full disk lacks nothing when there is space, and a file that is new is not filled up", () => {
    mkdirSync(join(folder, "disk"));
    symlinkSync("/dev/full", path());
    const { file, said } = opened();
    file.append("a\n");
    expect(said[0]).toContain("no space is left on its disk");
    rmSync(path());
    writeFileSync(path(), "before\n");
    file.append(new TextEncoder().encode("b\n"));
    expect(readFileSync(path(), "utf8")).toBe("before\na\nb\n");
  });
});
