import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";

const reductions = { none: 0, mean: 1, sum: 2 }; // at::Reduction

export interface CrossEntropyOptions {
  reduction?: "mean" | "sum" | "none";
  ignoreIndex?: number;
  labelSmoothing?: number;
}

/**
 * −log softmax(logits)[target], in nats:  logits (…, classes)   target (…) i64   → ()
 *
 * A target of floats, of the logits' shape, has the probability of each class:
 *
 *   −Σ target · log softmax(logits)
 *
 * The classes are the last dimension; PyTorch has them second. reduction "none" gives one loss per target, in one
 * dimension.
 */
export function crossEntropy(logits: Tensor, target: Tensor, options: CrossEntropyOptions = {}): Tensor {
  checkOptions("crossEntropy", options, ["reduction", "ignoreIndex", "labelSmoothing"]);
  const { reduction = "mean", ignoreIndex = -100, labelSmoothing = 0 } = options;
  if (!Object.hasOwn(reductions, reduction))
    throw new TypeError(`crossEntropy: reduction is ${String(reduction)}, and must be mean, sum or none`);
  const classes = logits.shape.at(-1) ?? 1;
  const isIndex = target.dtype === "i64";
  const isFloat = ["f16", "bf16", "f32", "f64"].includes(target.dtype);
  if (!isIndex && !(isFloat && target.shape.join() === logits.shape.join()))
    throw new TypeError(
      `crossEntropy: target is ${target.dtype}[${target.shape.join(", ")}]; classes are numbers in i64, as tensor([0, 1], { dtype: "i64" }) has them, and probabilities are floats in the shape of the logits, [${logits.shape.join(", ")}]`,
    );
  const rows = logits.reshape(-1, classes);
  const targets = isIndex ? target.reshape(-1) : target.reshape(-1, classes);
  return call("aten::cross_entropy_loss", rows, targets, null, reductions[reduction], ignoreIndex, labelSmoothing);
}
