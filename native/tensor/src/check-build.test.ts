import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { checkBuild, native, packageRoot, readBuildInfo } from "./index.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-build-"));
afterAll(() => rmSync(folder, { recursive: true }));

function libtorch(name: string): string {
  mkdirSync(join(folder, name, "lib"), { recursive: true });
  writeFileSync(join(folder, name, "lib", "libtorch_cpu.so"), "");
  return join(folder, name);
}

function builtAgainst(root: string): string {
  const made = mkdtempSync(join(folder, "package-"));
  mkdirSync(join(made, "build", "Release"), { recursive: true });
  const info = { libtorch: root, foundBy: "LIBTORCH", version: "2.13.0", cxx11Abi: 1, compiler: "GNU 12.2.0" };
  writeFileSync(join(made, "build", "Release", "build-info.json"), JSON.stringify(info));
  return made;
}

describe("the record of the build", () => {
  it("names the libtorch that is loaded", () => {
    const info = readBuildInfo(packageRoot)!;
    expect(native.library().version.split("+")[0]).toBe(info.version);
    expect(native.library().folder).toBe(join(info.libtorch, "lib"));
  });

  it("is fine when its libtorch is there and LIBTORCH is unset, or is a link to it", () => {
    const root = libtorch("here");
    symlinkSync(root, join(folder, "link"));
    checkBuild(builtAgainst(root), {});
    checkBuild(builtAgainst(root), { LIBTORCH: "" });
    checkBuild(builtAgainst(root), { LIBTORCH: join(folder, "link") });
  });

  it("refuses a libtorch that went away, and says how to rebuild", () => {
    const made = builtAgainst(join(folder, "gone"));
    expect(() => checkBuild(made, {})).toThrow(
      /against libtorch 2\.13\.0 at .*gone, which is not there any more\. Rebuild it with/,
    );
  });

  it("refuses a LIBTORCH that is another one, or nothing", () => {
    const made = builtAgainst(libtorch("one"));
    expect(() => checkBuild(made, { LIBTORCH: libtorch("two") })).toThrow(/at .*one, but LIBTORCH is .*two\. Rebuild/);
    expect(() => checkBuild(made, { LIBTORCH: "/nowhere" })).toThrow(/LIBTORCH is \/nowhere/);
  });

  it("leaves an addon that is not built to the loader", () => {
    checkBuild(folder, { LIBTORCH: "/nowhere" });
  });
});
