import { type Handle, native } from "@terse/native-tensor";
import { handleOf, scope } from "./lifetime.ts";
import { synchronous } from "./synchronous.ts";
import { Tensor } from "./tensor.ts";

type Body = (...inputs: Tensor[]) => Tensor;

/** What backward may need to compute again, by token. */
const bodies = new Map<number, Body>();
let nextToken = 1;

/**
 * Activation checkpointing, as torch.utils.checkpoint: computes `body(...inputs)`, and keeps only the inputs for
 * backward. Backward computes `body` a second time, with the same random numbers and the same autocast, so gradients
 * are the same bits. It costs one more forward pass of `body`, and saves the memory of its intermediate results.
 * Without recording it is a plain call.
 *
 * `body` is synchronous, reads and changes nothing but its inputs and parameters, and returns one tensor. A tensor that
 * another part of the model has computed must be one of the inputs: a tensor that requires a gradient and is not one
 * throws RangeError. Chen et al. 2016, https://arxiv.org/abs/1604.06174.
 */
export function checkpoint(body: Body, ...inputs: Tensor[]): Tensor {
  if (!isRecording()) return body(...inputs);
  const token = nextToken++;
  return scope(() => {
    const leaves = native.beginCheckpoint(inputs.map(handleOf), token).map((leaf) => new Tensor(leaf));
    let result: Tensor | undefined;
    let recorded: Handle | null = null;
    try {
      result = synchronous(
        body(...leaves),
        "checkpoint: the function is async, and backward cannot wait for it; checkpoint its synchronous parts",
      );
    } finally {
      recorded = native.endCheckpoint(result === undefined ? null : handleOf(result));
    }
    if (recorded === null) return result;
    if (bodies.size === 0) native.onRecompute(recompute);
    bodies.set(token, body);
    return new Tensor(recorded);
  });
}

function recompute(token: number, inputs?: Handle[]): void {
  if (inputs === undefined) bodies.delete(token);
  else
    scope(() => {
      native.recomputed(handleOf(bodies.get(token)!(...inputs.map((input) => new Tensor(input)))));
    });
}

function isRecording(): boolean {
  const recording = native.setGradEnabled(true);
  native.setGradEnabled(recording);
  return recording;
}
