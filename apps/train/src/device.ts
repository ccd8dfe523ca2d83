/** Where a rank computes. */
import { existsSync } from "node:fs";
import { readWorldEnvironment } from "@terse/collectives";
import { OptionsError } from "@terse/options";
import { openDevice, TensorError } from "@terse/tensor";
import type { Recipe } from "./recipe.ts";

/** "cpu", or this rank's GPU: "cuda:1". */
export function deviceOf({ device }: Recipe, env: NodeJS.ProcessEnv = process.env): string {
  return device === "cuda" ? `cuda:${readWorldEnvironment(env).localRank}` : device;
}

/** The device after it has been opened. Throws `OptionsError` where this machine cannot open it. */
export function openDeviceOf(recipe: Recipe): string {
  const device = deviceOf(recipe);
  if (device === "cpu") return device;
  try {
    openDevice(device);
    return device;
  } catch (error) {
    if (!(error instanceof TensorError)) throw error;
    throw new OptionsError([unusable(recipe, error.message)]);
  }
}

const driverFiles = ["/proc/driver/nvidia/version", "/dev/nvidiactl", "/dev/dxg"]; // the last one: of Windows' Linux

/** Why a device cannot be used: there is no driver, or else libtorch's words without the function's name. */
export function unusable({ device }: Pick<Recipe, "device">, why: string, files = driverFiles): string {
  if (!files.some((file) => existsSync(file)))
    return `device: ${device}: this machine has no NVIDIA driver (see ./terse doctor)`;
  const remedy =
    device === "cuda" && /there is no cuda:\d/.test(why)
      ? "; each rank takes one: start as many ranks, --nproc-per-node=gpu, or let them share one, --device=cuda:0"
      : "";
  return `device: ${device}: ${why.replace(/^openDevice: /, "")}${remedy}`;
}
