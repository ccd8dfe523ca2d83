import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { findCuda, findNccl } from "./graphics.ts";
import { scratchFolder } from "./scratch-folder.ts";

describe("what pip's NVIDIA wheels bring", () => {
  it("finds NCCL and its version", async () => {
    const packages = scratchFolder();
    const library = join(packages, "nvidia", "nccl", "lib");
    mkdirSync(library, { recursive: true });
    mkdirSync(join(packages, "nvidia_nccl_cu13-2.27.7.dist-info"));
    writeFileSync(join(library, "libnccl.so.2"), "");
    const found = await findNccl([packages]);
    // The system's own comes first where there is one.
    if (found?.path.startsWith(packages))
      expect(found).toEqual({ path: join(library, "libnccl.so.2"), version: "2.27.7" });
    else expect(found?.path).toMatch(/libnccl\.so\.2$/);
  });

  it("finds the CUDA compiler", async () => {
    const packages = scratchFolder();
    mkdirSync(join(packages, "nvidia", "cu13", "bin"), { recursive: true });
    writeFileSync(join(packages, "nvidia", "cu13", "bin", "nvcc"), "");
    expect((await findCuda([packages])).compiler).toMatch(/bin\/nvcc$/);
  });
});
