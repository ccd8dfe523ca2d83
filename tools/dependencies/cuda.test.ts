import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { findCuda } from "./cuda.ts";

it("finds the CUDA compiler among pip's packages", async () => {
  const packages = scratchFolder();
  mkdirSync(join(packages, "nvidia", "cu13", "bin"), { recursive: true });
  writeFileSync(join(packages, "nvidia", "cu13", "bin", "nvcc"), "");
  expect((await findCuda([packages])).compiler).toMatch(/bin\/nvcc$/);
});
