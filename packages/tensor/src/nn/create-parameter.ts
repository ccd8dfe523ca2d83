import type { DType } from "@terse/native-tensor";
import { empty, type Shape } from "../factories.ts";
import { scope } from "../lifetime.ts";
import type { Tensor } from "../tensor.ts";
import { Parameter, type Role } from "./parameter.ts";

let watch: { readonly dtypes: readonly DType[]; readonly made: Parameter[] } | undefined;

/** A parameter of this shape, with the values that `fill` writes, each by itself. Frees the temporary tensors. */
export function createParameter(shape: Shape, role: Role, fill: (data: Tensor) => Tensor): Parameter {
  const dtype = watch?.dtypes[watch.made.length] ?? "f32";
  const parameter = scope(() => {
    if (dtype === "f32") return new Parameter(fill(empty(shape)), { role });
    const held = new Parameter(empty(shape, { dtype }), { role });
    held.computesIn = "f32";
    return held.draw(fill);
  });
  watch?.made.push(parameter);
  return parameter;
}

/**
 * Runs `create` and lists the parameters that it makes. The i-th is held in `dtypes[i]` from the start, where that is
 * given, with the values that it would have as f32, rounded: memory never has the whole model in f32.
 */
export function createdIn<T>(dtypes: readonly DType[], create: () => T): { result: T; made: readonly Parameter[] } {
  const [before, made] = [watch, [] as Parameter[]];
  watch = { dtypes, made };
  try {
    return { result: create(), made };
  } finally {
    watch = before;
  }
}
