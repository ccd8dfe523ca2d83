import { readdirSync, statSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { weightsFile } from "./weights.ts";

const pickled = /^pytorch_model.*\.bin$|\.(pth|pt|ckpt)$/;
/** What a Trainer of transformers saves beside the weights. */
const beside = /^(optimizer|scheduler|scaler|rng_state.*)\.(pth|pt)$/;
const shard = /^pytorch_model-\d{5}-of-\d{5}\.bin$/;

/**
 * If `path` is a file of PyTorch's pickled weights, or a folder with one: why it is not read, and how to convert it.
 */
export function pickledWeights(path: string): string | undefined {
  const status = statSync(path, { throwIfNoEntry: false });
  const names = status?.isDirectory() ? readdirSync(path).sort() : [];
  const name = names.find((each) => pickled.test(each) && !beside.test(each));
  const file = name === undefined ? path : join(path, name);
  if (name === undefined && !(status?.isFile() && pickled.test(file))) return undefined;
  const all = shard.test(basename(file)) ? join(dirname(file), "pytorch_model-*-of-*.bin") : undefined;
  const [from, to] = [all ?? file, join(dirname(file), weightsFile)].map((each) => JSON.stringify(each));
  const [module, each] = all ? ["glob, ", `for f in glob.glob(${from}) `] : ["", ""];
  const line = `import ${module}torch, safetensors.torch as s; s.save_file({k: v.contiguous().clone() ${each}for k, v in torch.load(${all ? "f" : from}, "cpu", weights_only=True).items()}, ${to})`;
  return `${file} is pickled, and pickled weights are not read, because they can execute code. Python writes them as safetensors: python -c '${line}'`;
}
