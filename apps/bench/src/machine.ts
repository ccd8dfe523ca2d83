import { execFileSync } from "node:child_process";
import { cpus } from "node:os";
import { availableProcessors } from "@terse/native-loader";
import { amountText } from "@terse/train/format";

/** "AMD EPYC 9B14, 16 cores, NVIDIA H100 80GB HBM3 with driver 580.159.04, Node 24.21.0" */
export function machineText(): string {
  const cores = `${cpus()[0]?.model.trim()}, ${amountText(availableProcessors(), "core")}`;
  return [cores, ...gpus(), `Node ${process.versions.node}`].join(", ");
}

function gpus(): string[] {
  try {
    const query = ["--query-gpu=name,driver_version", "--format=csv,noheader"];
    const lines = execFileSync("nvidia-smi", query, { encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
    return lines
      .trim()
      .split("\n")
      .map((line) => line.replace(", ", " with driver "));
  } catch {
    return []; // no driver
  }
}
