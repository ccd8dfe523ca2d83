import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { root } from "../toolchain.ts";
import { asksForGpu, capabilitiesIn, commandsFor, driverIsHere, kernelsAreCurrent } from "./gpu-kernels.ts";

describe("the kernels for GPUs", () => {
  it("are wanted by commands that name a GPU, where there is a driver", () => {
    expect(asksForGpu(["--device=cuda"])).toBe(true);
    expect(asksForGpu(["--device", "cuda:0"])).toBe(true);
    expect(asksForGpu(["gpt-small", "--steps=3"])).toBe(false);
    expect(driverIsHere([import.meta.filename, "/nowhere"])).toBe(true);
    expect(driverIsHere(["/nowhere"])).toBe(false);
  });

  it("are for the GPUs that the driver lists", () => {
    expect(capabilitiesIn("9.0\n12.0\n9.0\n")).toBe("120;90");
    expect(capabilitiesIn("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.")).toBe("");
  });

  it("are built where the addons look for them, by a compiler and for GPUs that have not changed", () => {
    const [configure, build] = commandsFor("codecs", "90;120", 3);
    const folder = join(root, "native/codecs/cuda/build");
    expect(configure!.slice(2)).toEqual(["-B", folder, "-DTERSE_CUDA_ARCHITECTURES=90;120"]);
    expect(build).toEqual(["--build", folder, "--target", "terse_codecs_cuda", "--parallel", "3"]);
    expect(kernelsAreCurrent("codecs", process.execPath, "1000")).toBe(false);
  });
});
