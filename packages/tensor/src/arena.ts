import { native } from "@terse/native-tensor";
import { zeros } from "./factories.ts";
import { GradientHooks } from "./gradient-hooks.ts";
import { handleOf, scope } from "./lifetime.ts";
import type { Role } from "./nn/index.ts";
import { Module } from "./nn/module.ts";
import type { Parameter } from "./nn/parameter.ts";
import { noGrad } from "./no-grad.ts";
import type { Tensor } from "./tensor.ts";

/** One parameter's place in the arena. Offset and length are in elements. */
export interface Segment {
  readonly name: string;
  readonly shape: readonly number[];
  readonly offset: number; // a multiple of 64, so that packed signs start at a whole 64-bit word
  readonly length: number;
  readonly role: Role;
}

const alignment = 64;

/**
 * Makes all parameters of a module views of one flat f32 buffer, and all their gradients views of another. So an
 * exchange needs no copy, and a fused kernel runs once over the whole model. Parameters keep their values. Autograd
 * adds into the gradient buffer in place.
 *
 * Segments are in the order of `namedParameters()`. A tied parameter has one segment, a frozen one (requiresGrad false)
 * has none. Elements between two segments are 0 and stay 0.
 *
 * The constructor throws an Error if a parameter is not f32, is on another device than the first, or is in another
 * arena.
 */
export class Arena implements Disposable {
  readonly parameters: Tensor; // (N)
  readonly gradients: Tensor; // (N)
  readonly segments: readonly Segment[];
  readonly #leaves: readonly Parameter[];
  readonly #hooks: GradientHooks;

  constructor(module: Module) {
    if (!(module instanceof Module))
      throw new TypeError("Arena: expected a Module, whose parameters it takes; give the model itself");
    const named = module.namedParameters().filter(([, parameter]) => parameter.requiresGrad);
    if (named.length === 0)
      throw new Error("Arena: the module has no parameter that requires a gradient; call requiresGrad_() on it first");
    const device = named[0]![1].device;
    let end = 0;
    this.segments = named.map(([name, parameter]) => {
      if (parameter.inArena)
        throw new Error(`Arena: ${name} is in another arena already; make one arena per module, and share it`);
      if (parameter.dtype !== "f32" || parameter.device !== device)
        throw new Error(
          `Arena: ${name} is ${parameter.dtype} on ${parameter.device}, but an arena is f32 on one device, here ${device}; move the module with to() first`,
        );
      const { shape, length, role } = parameter;
      const segment = { name, shape, offset: end, length, role };
      end = Math.ceil((end + length) / alignment) * alignment;
      return segment;
    });
    this.#leaves = named.map(([, parameter]) => parameter);
    this.#hooks = new GradientHooks(this.#leaves);
    this.parameters = zeros([end], { device }).keep();
    this.gradients = zeros([end], { device }).keep();

    noGrad(() =>
      scope(() => {
        this.#leaves.forEach((leaf, i) => {
          const { offset, length, shape } = this.segments[i]!;
          const place = (flat: Tensor) => flat.narrow(0, offset, length).view(shape);
          native.setData(handleOf(leaf), handleOf(place(this.parameters).copy_(leaf)));
          const gradient = place(this.gradients);
          const before = leaf.grad;
          if (before !== null) gradient.copy_(before);
          leaf.grad = gradient;
          leaf.inArena = true;
        });
      }),
    );
  }

  /** Sets all gradients to 0. Call it, or `replaceGradients`, before the first backward of a step. */
  zeroGradients(): void {
    this.gradients.zero_();
  }

  /**
   * The next backward replaces all gradients, by 0 where the loss does not depend on a parameter; later ones add to
   * them. This costs two passes over the memory less than `zeroGradients`, as PyTorch's `zero_grad(set_to_none=True)`
   * does. Until that backward has ended, `gradients` holds old values and parameters have no `grad`. Call
   * `zeroGradients` if anything but backward writes gradients.
   */
  replaceGradients(): void {
    native.replaceGradients(this.#leaves.map(handleOf));
  }

  /**
   * Calls `callback` with the index of a segment as soon as backward has completed its gradient, while backward still
   * computes others. It is not called for a parameter that the loss does not depend on. Returns a function that removes
   * the callback.
   */
  onGradientReady(callback: (segment: number) => void): () => void {
    return this.#hooks.add(callback);
  }

  /** Disposes both buffers. Their memory is freed when the parameters are disposed too. */
  dispose(): void {
    this.parameters.dispose();
    this.gradients.dispose();
  }

  [Symbol.dispose](): void {
    this.dispose();
  }
}
