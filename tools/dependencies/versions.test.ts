import { describe, expect, it } from "vitest";
import { compareVersions, parseVersion, withinReleases } from "./versions.ts";

describe("versions", () => {
  it("reads version numbers from the output of tools", () => {
    expect(parseVersion("v24.21.0")).toEqual([24, 21, 0]);
    expect(parseVersion("2.13.0+cu130")).toEqual([2, 13, 0]);
    expect(parseVersion("2.6.0a0+git1234")).toEqual([2, 6, 0]);
    expect(parseVersion("g++ (Debian 12.2.0-14) 12.2.0")).toEqual([12, 2, 0]);
    expect(parseVersion("unknown")).toEqual([]);
  });

  it("compares numbers, not letters", () => {
    expect(compareVersions("2.9", "2.13")).toBeLessThan(0);
    expect(compareVersions("24.0.0", "v24")).toBe(0);
    expect(compareVersions("3.11.2", "3.11")).toBeGreaterThan(0);
  });

  it("includes both ends of a range of releases, with all their patches", () => {
    const range = { from: "2.6", to: "2.14" };
    expect(["2.6.0", "2.13.0+cu130", "2.14.7"].map((version) => withinReleases(version, range))).toEqual([
      true,
      true,
      true,
    ]);
    expect(["1.13.0", "2.5.1", "2.15.0", "3.0", ""].map((version) => withinReleases(version, range))).toEqual([
      false,
      false,
      false,
      false,
      false,
    ]);
  });
});
