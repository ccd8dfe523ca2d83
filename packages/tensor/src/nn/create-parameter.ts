import { empty, type Shape } from "../factories.ts";
import { scope } from "../lifetime.ts";
import type { Tensor } from "../tensor.ts";
import { Parameter, type Role } from "./parameter.ts";

/** A parameter of this shape, with the values that `fill` writes. Frees the temporary tensors. */
export function createParameter(shape: Shape, role: Role, fill: (data: Tensor) => Tensor): Parameter {
  return scope(() => new Parameter(fill(empty(shape)), { role }));
}
