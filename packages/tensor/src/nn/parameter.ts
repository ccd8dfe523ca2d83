import { type DType, native } from "@terse/native-tensor";
import { empty } from "../factories.ts";
import { handleOf, keep, scope } from "../lifetime.ts";
import { noGrad } from "../no-grad.ts";
import { detached, Tensor } from "../tensor.ts";

/**
 * Roles of parameters, which optimizers treat differently: Muon and Dion update matrices, weight decay may leave out
 * norms.
 */
export const roles = ["matrix", "vector", "embedding", "head", "norm"] as const;

export type Role = (typeof roles)[number];

/** Elements that are drawn at once: whole blocks, so that libtorch draws the same numbers as for all together. */
const drawnAtOnce = 1 << 16;
/** Where they are drawn: glibc uses the memory of freed aligned blocks again only in part. */
let drawn: Tensor | undefined;

/** A leaf that requires a gradient and is kept, so no scope frees it. Shares the memory of `data`. */
export class Parameter extends Tensor {
  readonly role: Role;
  /** Whether an arena holds this parameter's memory, which must then not move. */
  inArena = false;
  /** The type in which layers compute with it, where memory holds it in another. */
  computesIn: DType | null = null;

  /** Holds a frozen parameter in another type, in new memory; layers convert it when they compute. */
  holdIn(dtype: DType): void {
    if (this.requiresGrad)
      throw new Error("holdIn: the parameter requires a gradient, which needs its full precision; freeze it first");
    if (this.dtype === dtype) return;
    this.computesIn ??= this.dtype;
    scope(() => native.setData(handleOf(this), handleOf(this.to(dtype))));
  }

  /** Holds it in the type again in which layers compute; values stay as `holdIn` has rounded them. */
  holdAsComputed(): void {
    if (this.computesIn === null) return;
    this.holdIn(this.computesIn);
    this.computesIn = null;
  }

  /**
   * Sets the values that `fill` writes, each by itself. Where memory holds them in another type, `fill` writes parts of
   * them in f32 on the CPU, and they are rounded.
   */
  draw(fill: (data: Tensor) => Tensor): this {
    noGrad(() => {
      if (this.computesIn === null) return void fill(this);
      const { length } = this;
      drawn ??= empty([drawnAtOnce], { device: "cpu" }).keep();
      for (let at = 0; at < length; at += drawnAtOnce)
        scope(() => {
          const count = Math.min(drawnAtOnce, length - at);
          this.detach()
            .view(length)
            .narrow(0, at, count)
            .copy_(fill(drawn!.narrow(0, 0, count)));
        });
    });
    return this;
  }

  override normal_(options?: { mean?: number; std?: number }): this {
    if (this.computesIn === null) return super.normal_(options);
    return this.draw((data) => data.normal_(options));
  }

  constructor(data: Tensor, options: { role: Role }) {
    const role = options?.role;
    if (!roles.includes(role))
      throw new TypeError(
        `Parameter: role is ${role}, and must be one of ${roles.join(", ")}, as in { role: "vector" }`,
      );
    super(detached(data));
    this.requiresGrad = true;
    this.role = role;
    keep(this);
  }

  override get grad(): Tensor | null {
    return super.grad;
  }
  /** Sets the gradient. Throws if the parameter is in an arena: optimizers read only the arena's gradient buffer. */
  override set grad(gradient: Tensor | null) {
    if (this.inArena)
      throw new Error(
        "grad: the gradient is part of an arena and cannot be replaced; call arena.zeroGradients() to clear it",
      );
    super.grad = gradient;
  }
}
