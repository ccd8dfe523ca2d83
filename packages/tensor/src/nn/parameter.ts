import { type Handle, native } from "@terse/native-tensor";
import { handleOf, keep } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

/** What a parameter is to an optimizer: Muon and Dion take matrices, weight decay may spare norms, the head learns on its own. */
export type Role = "matrix" | "vector" | "embedding" | "head" | "norm";

const detach = native.find("aten::detach");

/** A leaf that autograd fills with gradients, and that no scope frees. Shares the memory of `data`. */
export class Parameter extends Tensor {
  readonly role: Role;
  /** An arena holds this parameter's memory, which must not move any more. */
  inArena = false;

  constructor(data: Tensor, { role }: { role: Role }) {
    super(native.call(detach, handleOf(data)) as Handle);
    this.requiresGrad = true;
    this.role = role;
    keep(this);
  }

  override get grad(): Tensor | null {
    return super.grad;
  }
  /** What an arena holds is filled with zeros instead of being dropped: optimizers read the arena's buffer and nothing else. */
  override set grad(gradient: Tensor | null) {
    if (this.inArena)
      throw new Error(
        "grad: the gradient is a part of an arena, which would not see another one; use arena.zeroGradients()",
      );
    super.grad = gradient;
  }
}
