import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../toolchain.ts";
import { platformPackages, requireGlibc, thisPlatform } from "./platform-packages.ts";

const lockfile = `lockfileVersion: '9.0'

importers:

  .:
    devDependencies:
      tool:
        specifier: ^1.0.0
        version: 1.0.0

packages:

  '@tool/linux-x64-gnu@1.0.0':
    resolution: {integrity: sha512-a==}
    engines: {node: '>=20'}
    cpu: [x64]
    os: [linux]
    libc: [glibc]

  '@tool/linux-x64-musl@1.0.0':
    resolution: {integrity: sha512-b==}
    cpu: [x64]
    os: [linux]
    libc: [musl]

  '@tool/linux-arm64-gnu@1.0.0':
    resolution: {integrity: sha512-c==}
    cpu: [arm64]
    os: [linux]
    libc: [glibc]

  fsevents@2.3.3:
    resolution: {integrity: sha512-d==}
    os: [darwin]

  tool-linux-64@1.0.0:
    resolution: {integrity: sha512-e==}
    cpu: [x64, arm64]
    os: [linux, freebsd]

  tool@1.0.0:
    resolution: {integrity: sha512-f==}
    engines: {node: '>=20'}

snapshots:

  '@tool/linux-x64-gnu@1.0.0':
    optional: true
`;

describe("platformPackages", () => {
  it("finds the packages for this platform, and no others", () => {
    const here = { os: "linux", cpu: "x64", libc: "glibc" };
    expect(platformPackages(lockfile, here)).toEqual(["@tool/linux-x64-gnu@1.0.0", "tool-linux-64@1.0.0"]);
    expect(platformPackages(lockfile, { ...here, libc: "musl" })).toEqual([
      "@tool/linux-x64-musl@1.0.0",
      "tool-linux-64@1.0.0",
    ]);
    expect(platformPackages(lockfile, { os: "darwin", cpu: "arm64", libc: "" })).toEqual(["fsevents@2.3.3"]);
    expect(platformPackages("", here)).toEqual([]);
  });

  it.skipIf(process.platform !== "linux" || process.arch !== "x64")(
    "reads this repository's lockfile (on Linux, x86-64)",
    () => {
      const names = platformPackages(readFileSync(join(root, "pnpm-lock.yaml"), "utf8"), thisPlatform()).map((name) =>
        name.replace(/@[^@]*$/, ""),
      );
      expect(names).toEqual(
        expect.arrayContaining(["@biomejs/cli-linux-x64", "@esbuild/linux-x64", "@turbo/linux-64"]),
      );
    },
  );
});

describe("requireGlibc", () => {
  it("refuses a system with musl, which pip would have no wheel for", () => {
    expect(() => requireGlibc({ ...thisPlatform(), libc: "musl" })).toThrow(
      /needs glibc.* musl, as Alpine has: use Debian/,
    );
    expect(() => requireGlibc({ ...thisPlatform(), libc: "glibc" })).not.toThrow();
  });
});
