import { openDevice, TensorError } from "@terse/tensor";

/** The first GPU. Undefined, after a line that says why, where none can be used. */
export function openGpu(setting: string): string | undefined {
  try {
    return openDevice("cuda");
  } catch (error) {
    if (!(error instanceof TensorError)) throw error;
    process.stderr.write(`${setting} is left out: ${error.message}\n`);
    return undefined;
  }
}
