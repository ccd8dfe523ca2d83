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
  const built = mkdtempSync(join(folder, "package-"));
  mkdirSync(join(built, "build", "Release"), { recursive: true });
  const info = { libtorch: root, foundBy: "LIBTORCH", version: "2.13.0", cxx11Abi: 1, compiler: "GNU 12.2.0" };
  writeFileSync(join(built, "build", "Release", "build-info.json"), JSON.stringify(info));
  return built;
}

describe("build-info.json", () => {
  it("names the loaded libtorch", () => {
    const info = readBuildInfo(packageRoot)!;
    expect(native.library().version.split("+")[0]).toBe(info.version);
    expect(native.library().folder).toBe(join(info.libtorch, "lib"));
  });

  it("is accepted if its libtorch exists and LIBTORCH is unset, or a link to it", () => {
    const root = libtorch("here");
    symlinkSync(root, join(folder, "link"));
    checkBuild(builtAgainst(root), {});
    checkBuild(builtAgainst(root), { LIBTORCH: "" });
    checkBuild(builtAgainst(root), { LIBTORCH: join(folder, "link") });
  });

  it("is refused if its libtorch was removed; the error says how to rebuild", () => {
    const built = builtAgainst(join(folder, "gone"));
    expect(() => checkBuild(built, {})).toThrow(
      /against libtorch 2\.13\.0 at .*gone, which does not exist any more\. Rebuild it with/,
    );
  });

  it("is refused if LIBTORCH is another one, or does not exist", () => {
    const built = builtAgainst(libtorch("one"));
    expect(() => checkBuild(built, { LIBTORCH: libtorch("two") })).toThrow(/at .*one, but LIBTORCH is .*two\. Rebuild/);
    expect(() => checkBuild(built, { LIBTORCH: "/nowhere" })).toThrow(/LIBTORCH is \/nowhere/);
  });

  it("may be missing: the loader reports an addon that is not built", () => {
    checkBuild(folder, { LIBTORCH: "/nowhere" });
  });
});
