/**
 * `two-ranks`: GPT-2's size with two ranks that share a GPU and send over tcp, by method: what a step takes, and what a
 * rank sends. The ranks compute in turn, so a step takes twice as long as of one rank; what a method adds to that is
 * its own work, and the way from the GPU to the host and back.
 */
import { mkdtempDisposableSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stepsOf, trained } from "../app/trained.ts";
import { type Measurement, median } from "../measurement.ts";
import { openGpu } from "./open-gpu.ts";

const [steps, skipped] = [12, 5];

const adamw = ["optimizer.name=adamw", "optimizer.lr=1e-4"];
const methods: Readonly<Record<string, readonly string[]>> = {
  adamw: [...adamw, "exchange.gradient=null"],
  "adamw, means in bf16": [...adamw, "exchange.gradient=null", "exchange.dense=bf16"],
  "adamw, means in int8": [...adamw, "exchange.gradient=null", "exchange.dense=int8"],
  "adamw with qsgd": [...adamw, "exchange.gradient.name=qsgd"],
  "adamw with terngrad": [...adamw, "exchange.gradient.name=terngrad"],
  "adamw with int8 and error feedback": [...adamw, "exchange.gradient.name=codec", "exchange.gradient.codec=int8"],
  "adamw with top-k, 1 of 100": [
    ...adamw,
    "exchange.gradient.name=codec",
    "exchange.gradient.codec=top-k",
    "exchange.gradient.ratio=0.01",
  ],
  "lion-cub": ["optimizer.name=lion-cub", "optimizer.lr=1e-4"],
  "one-bit-adam": ["optimizer.name=one-bit-adam", "optimizer.lr=1e-4", "optimizer.warmup=2"],
  "one-bit-lamb": ["optimizer.name=one-bit-lamb", "optimizer.lr=1e-4", "optimizer.warmup=2"],
};

const sizes = ["model.preset=124M", "model.context=1024", "data.batchSize=8"];

export async function* twoRanks(): AsyncGenerator<Measurement> {
  if (openGpu("two-ranks") === undefined) return;
  for (const [method, changes] of Object.entries(methods))
    yield* timed(method, ["device=cuda:0", "precision=bf16", ...sizes, ...changes]);
}

/** Exported for machines without a GPU. */
export async function* timed(method: string, changes: readonly string[]): AsyncGenerator<Measurement> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "terse-two-ranks-"));
  const text = new URL("../../../../docs", import.meta.url).pathname;
  const overrides = [`steps=${steps}`, `data.path=${text}`, "save.every=0", ...changes];
  await trained(join(folder.path, "run"), ["--recipe=gpt-small", ...overrides.map((each) => `--${each}`)]);
  const logged = stepsOf(join(folder.path, "run")).slice(skipped);
  const inCase = { case: method };
  yield { ...inCase, metric: "step_ms", value: 1000 * median(logged.map((each) => each.step_seconds)), unit: "ms" };
  yield { ...inCase, metric: "sent_per_step", value: logged.at(-1)!.sent_bytes, unit: "B" };
}
