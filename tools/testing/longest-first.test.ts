import { existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "../toolchain.ts";
import { longest } from "./longest-first.ts";

it("names files that exist", () => {
  expect(longest.filter((file) => !existsSync(join(root, file)))).toEqual([]);
});
