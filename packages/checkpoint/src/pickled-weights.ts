import { readdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { weightsFile } from "./weights.ts";

const pickled = /^pytorch_model.*\.bin$|\.(pth|pt|ckpt)$/;

/**
 * If `path` is a file of PyTorch's pickled weights, or a folder with one: why it is not read, and how to convert it.
 */
export function pickledWeights(path: string): string | undefined {
  const status = statSync(path, { throwIfNoEntry: false });
  const name = status?.isDirectory() ? readdirSync(path).find((each) => pickled.test(each)) : undefined;
  const file = name === undefined ? path : join(path, name);
  if (name === undefined && !(status?.isFile() && pickled.test(file))) return undefined;
  const [from, to] = [file, join(dirname(file), weightsFile)].map((each) => JSON.stringify(each));
  const line = `import torch, safetensors.torch as s; s.save_file({k: v.contiguous().clone() for k, v in torch.load(${from}, "cpu", weights_only=True).items()}, ${to})`;
  return `${file} is pickled, and pickled weights are not read, because they can execute code. Python writes them as safetensors: python -c '${line}'`;
}
