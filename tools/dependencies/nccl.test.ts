import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { findNccl } from "./nccl.ts";

it("finds NCCL and its version among pip's packages, unless the system has one", async () => {
  const packages = scratchFolder();
  const library = join(packages, "nvidia", "nccl", "lib");
  mkdirSync(library, { recursive: true });
  mkdirSync(join(packages, "nvidia_nccl_cu13-2.27.7.dist-info"));
  writeFileSync(join(library, "libnccl.so.2"), "");
  const found = await findNccl([packages]);
  if (found?.path.startsWith(packages))
    expect(found).toEqual({ path: join(library, "libnccl.so.2"), version: "2.27.7" });
  else expect(found?.path).toMatch(/libnccl\.so\.2$/);
});
