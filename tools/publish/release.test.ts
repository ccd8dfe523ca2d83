import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { root } from "../toolchain.ts";
import { examples } from "./examples.ts";
import { tooNew } from "./prebuild.ts";
import { needsTensor, published, releaseFolder } from "./release.ts";

describe("./terse release", () => {
  it("gets a version for every package from the changesets, which it takes all", () => {
    const copy = scratchFolder();
    const manifests = [
      "package.json",
      "pnpm-workspace.yaml",
      "{packages,native,apps}/*/package.json",
      "test-e2e/package.json",
    ];
    for (const file of globSync([...manifests, ".changeset/*"], { cwd: root }))
      cpSync(join(root, file), join(copy, file), { recursive: true });
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"));
    if (globSync(".changeset/*.md", { cwd: copy }).length > 0)
      // none just after a release
      execFileSync(join(root, "node_modules/.bin/changeset"), ["version"], { cwd: copy, stdio: "pipe" });
    expect(globSync(".changeset/*.md", { cwd: copy })).toEqual([]);
    expect(published(copy).map(({ folder }) => folder)).toEqual(
      expect.arrayContaining(["packages/codecs", "native/loader"]),
    );
  });

  it("refuses a package without a version", () => {
    const copy = scratchFolder();
    mkdirSync(join(copy, "packages/new"), { recursive: true });
    writeFileSync(join(copy, "packages/new/package.json"), '{ "name": "@terse/new", "version": "0.0.0" }');
    expect(() => published(copy)).toThrow(/^@terse\/new: no changeset gives a version/);
  });

  it("publishes no package that depends on one that stays here", () => {
    const packages = globSync("{packages,native}/*/package.json", { cwd: root }).map(
      (file) =>
        JSON.parse(readFileSync(join(root, file), "utf8")) as { name: string; private?: true; dependencies?: object },
    );
    const names = packages.filter((each) => !each.private).map(({ name }) => name);
    for (const { name, private: stays, dependencies = {} } of packages)
      if (!stays)
        for (const needed of Object.keys(dependencies).filter((each) => each.startsWith("@terse/")))
          expect(names, name).toContain(needed);
  });

  it("runs an example of each package, those without tensors before the addon of libtorch is built", () => {
    const all = examples(root);
    expect(all.map(({ folder }) => folder)).toEqual(expect.arrayContaining(globSync("packages/*", { cwd: root })));
    const withoutTensor = all.filter(({ folder }) => !needsTensor(root, folder)).map(({ package: name }) => name);
    expect(withoutTensor).toEqual(expect.arrayContaining(["@terse/codecs", "@terse/collectives", "@terse/exchange"]));
    expect(withoutTensor).not.toContain("@terse/tensor");
    expect(withoutTensor).not.toContain("@terse/models");
  });

  it("refuses an addon that asks for a newer C library than Debian 12 and Ubuntu 22.04 have", () => {
    expect(tooNew("x\0GLIBC_2.34\0GLIBCXX_3.4.30\0GLIBC_2.2.5\0")).toEqual([]);
    expect(tooNew("x\0GLIBC_2.38\0GLIBCXX_3.4.31\0GLIBC_2.38\0")).toEqual(["GLIBC_2.38", "GLIBCXX_3.4.31"]);
  });

  it("takes one folder for the tarballs", () => {
    expect(releaseFolder([])).toBe(join(root, "build/release"));
    expect(releaseFolder(["out"])).toBe(resolve("out"));
    for (const wrong of [["a", "b"], ["--fast"]]) expect(() => releaseFolder(wrong)).toThrow(/takes one folder/);
  });
});
