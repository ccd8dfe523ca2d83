import { existsSync } from "node:fs";
import { expect, it } from "vitest";
import { openDeviceOf, unusable } from "./device.ts";
import { defaultRecipe, readRecipe } from "./recipe.ts";

const here = import.meta.filename;

it("says of a GPU that cannot be used why, without the name of a function", () => {
  expect(unusable({ device: "cuda" }, "openDevice: no CUDA device can be used: a library is missing", [here])).toBe(
    "device: cuda: no CUDA device can be used: a library is missing",
  );
  expect(unusable({ device: "cuda:0" }, "openDevice: no CUDA device can be used", [`${here}/none`])).toBe(
    "device: cuda:0: this machine has no NVIDIA driver (see ./terse doctor)",
  );
});

const driver = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"].some((file) => existsSync(file));
it.skipIf(driver)("refuses a GPU where there is no driver (skipped where there is one)", () => {
  expect(openDeviceOf(readRecipe(defaultRecipe, []))).toBe("cpu");
  expect(() => openDeviceOf(readRecipe(defaultRecipe, ["device=cuda"]))).toThrow(
    /^device: cuda: this machine has no NVIDIA driver \(see \.\/terse doctor\)$/,
  );
});
