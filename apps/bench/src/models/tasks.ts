/**
 * What `bench models` trains on real data, and with which methods. A setting is a task with a method:
 * resnet18-lion-cub.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";

export interface Task {
  /** Words of the report. */
  readonly title: string;
  readonly recipe: URL;
  /** What the recipe's data.path names, in the folder TERSE_DATA. */
  readonly data: string;
  /** Where the search for a method's learning rate begins. */
  readonly rates: Readonly<Record<keyof typeof methods, number>>;
}

const cifar10 = "cifar-10-subset"; // data_batch_1.bin and test_batch.bin, the binary version with fewer images
const shakespeare = "tinyshakespeare.txt";

/** Methods by what they change in a recipe. Lion's authors advise three to ten times AdamW's decay. */
export const methods = {
  lion: ["optimizer.name=lion", "optimizer.weightDecay=0.1"],
  "lion-cub": ["optimizer.name=lion-cub", "optimizer.weightDecay=0.1"],
  "lion-cub-8-bits-l1": [
    "optimizer.name=lion-cub",
    "optimizer.bits=8",
    "optimizer.quantizer=l1",
    "optimizer.weightDecay=0.1",
  ],
  dion: [
    "optimizer.name=dion",
    "optimizer.weightDecay=0.01",
    "optimizer.groups=[{roles: [embedding, head, norm, vector], name: adamw, lr: 2e-3, weightDecay: 0.01}]",
  ],
  "one-bit-lamb": ["optimizer.name=one-bit-lamb", "optimizer.weightDecay=0.01", "optimizer.warmup=0.2"],
} satisfies Record<string, readonly string[]>;

const recipe = (name: string) => new URL(`./recipes/${name}.yaml`, import.meta.url);
const lion = (lr: number) => ({ lion: lr, "lion-cub": lr, "lion-cub-8-bits-l1": lr });

/** The tasks, in the order of the report. */
export const tasks = {
  resnet18: {
    title: "ResNet-18 with 8 channels on CIFAR-10",
    recipe: recipe("resnet18"),
    data: cifar10,
    rates: { ...lion(2e-3), dion: 0.02, "one-bit-lamb": 0.02 },
  },
  "gpt-bytes": {
    title: "GPT on bytes of Shakespeare",
    recipe: recipe("gpt-bytes"),
    data: shakespeare,
    rates: { ...lion(1e-3), dion: 0.02, "one-bit-lamb": 0.02 },
  },
  bert: {
    title: "BERT-Tiny on masked bytes of Shakespeare",
    recipe: recipe("bert"),
    data: shakespeare,
    rates: { ...lion(1e-3), dion: 0.02, "one-bit-lamb": 0.02 },
  },
  deit: {
    title: "DeiT-Tiny, half as wide and deep, on CIFAR-10",
    recipe: recipe("deit"),
    data: cifar10,
    rates: { ...lion(5e-4), dion: 0.02, "one-bit-lamb": 0.02 },
  },
  "gpt-bpe": {
    title: "GPT on GPT-2's byte pairs of Shakespeare",
    recipe: recipe("gpt-bpe"),
    data: shakespeare,
    rates: { ...lion(1e-3), dion: 0.02, "one-bit-lamb": 0.02 },
  },
} satisfies Record<string, Task>;

/** Throws, and says what to do, where the data is not there. */
export function dataOf({ data }: Task): string {
  const folder = process.env["TERSE_DATA"];
  const path = folder && join(folder, data);
  if (!path || !existsSync(path))
    throw new Error(
      `${path ? `${path} does not exist` : "no real data"}: set TERSE_DATA to a folder with ${cifar10}/ (CIFAR-10's binary version, fewer images are fine) and ${shakespeare}`,
    );
  return path;
}
