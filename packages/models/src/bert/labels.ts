import { crossEntropy, type Tensor } from "@terse/tensor";

/** The label of a token that is not to be predicted. */
export const ignored = -100;

/**
 * Mean cross entropy in nats over the labels that are not −100; 0 where there is none.
 *
 *   logits (…, classes)   labels (…) i64   → ()
 */
export function lossOf(logits: Tensor, labels: Tensor): Tensor {
  const count = labels.ne(ignored).sum().clamp({ min: 1 });
  return crossEntropy(logits, labels, { reduction: "sum", ignoreIndex: ignored }).div(count);
}

/** The fraction of the labels that are not −100 and have the largest logit; 0 where there is no label. */
export function accuracyOf(logits: Tensor, labels: Tensor): Tensor {
  const known = labels.ne(ignored);
  const right = logits.argmax(-1).eq(labels).logicalAnd(known);
  return right
    .sum()
    .to("f32")
    .div(known.sum().clamp({ min: 1 }));
}
