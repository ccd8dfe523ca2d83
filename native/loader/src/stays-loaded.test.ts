import { execFileSync } from "node:child_process";
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const addons = globSync("*/build/Release/*.node", { cwd: fileURLToPath(new URL("../..", import.meta.url)) });

// Its threads may outlive the Worker that has loaded it.
it.each(addons)("%s stays in memory when nobody uses it any more", (addon) => {
  const path = fileURLToPath(new URL(`../../${addon}`, import.meta.url));
  expect(execFileSync("readelf", ["--dynamic", "--wide", path], { encoding: "utf8" })).toMatch(/FLAGS_1.*NODELETE/);
});
