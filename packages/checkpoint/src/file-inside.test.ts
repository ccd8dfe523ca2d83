import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { fileInside } from "./file-inside.ts";

let root: string;
beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "terse-inside-")));
  for (const folder of ["model", "model/inner", "model-2", "hub/snapshots/abc", "hub/blobs"])
    mkdirSync(join(root, folder), { recursive: true });
  for (const file of ["secret", "model/real", "model/inner/deep", "model-2/near", "hub/blobs/1085", "hub/token"])
    writeFileSync(join(root, file), file);
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const link = (target: string, name: string) => symlinkSync(target, join(root, name));

it("a file of a folder, by its name or by a link inside", () => {
  link("real", "model/link");
  link("inner/deep", "model/deep");
  link("model", "by-link");
  expect(fileInside(join(root, "model"), "real")).toBe(join(root, "model/real"));
  expect(fileInside(join(root, "model"), "link")).toBe(join(root, "model/real"));
  expect(fileInside(join(root, "model"), "deep")).toBe(join(root, "model/inner/deep"));
  expect(fileInside(join(root, "by-link"), "real")).toBe(join(root, "model/real"));
});

it("a blob of the cache of Hugging Face, and nothing else of it", () => {
  link("../../blobs/1085", "hub/snapshots/abc/config.json");
  link("../../token", "hub/snapshots/abc/vocab.json");
  const snapshot = join(root, "hub/snapshots/abc");
  expect(fileInside(snapshot, "config.json")).toBe(join(root, "hub/blobs/1085"));
  expect(() => fileInside(snapshot, "vocab.json")).toThrow(/leads to .*token, outside of its folder; put a copy/);
});

it("what leads out of the folder is refused, also into one whose name begins like it", () => {
  link("../secret", "model/up");
  link(join(root, "secret"), "model/absolute");
  link("../model-2/near", "model/near");
  for (const name of ["up", "absolute", "near", "../secret"])
    expect(() => fileInside(join(root, "model"), name), name).toThrow(/outside of its folder/);
});

it("what is no file is refused", () => {
  execFileSync("mkfifo", [join(root, "model/pipe")]);
  link("/dev/zero", "model/zero");
  link("nowhere", "model/broken");
  const messages = {
    pipe: "it is a pipe",
    zero: "it is a device",
    inner: "it is a folder",
    broken: "it does not exist",
  };
  for (const [name, message] of Object.entries(messages))
    expect(() => fileInside(join(root, "model"), name)).toThrow(message);
});
