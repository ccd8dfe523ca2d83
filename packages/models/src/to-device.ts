import type { Tensor } from "@terse/tensor";

/** Copies a batch's tensor to the device of the weights. */
export const toDevice = (device: string, tensor: Tensor): Tensor =>
  tensor.device === device ? tensor : tensor.to({ device });
