import type { NativeBuffer } from "@terse/native-optimizers";
import type { Tensor } from "@terse/tensor";
import type { Vector } from "./algorithm.ts";
import { memoryOf, slice } from "./kernels.ts";

/** The parts of a vector's tensors, one parameter after the other, as kernels take them. */
export function layersOf<Names extends string>(
  { offset, segments }: Vector,
  tensors: Readonly<Record<Names, Tensor>>,
): Record<Names, NativeBuffer>[] {
  const whole = Object.entries<Tensor>(tensors).map(([name, tensor]) => [name, memoryOf(tensor)] as const);
  return segments.map(({ offset: at, length }) => {
    const parts = whole.map(([name, memory]) => [name, slice(memory, at - offset, at - offset + length)]);
    return Object.fromEntries(parts);
  });
}
