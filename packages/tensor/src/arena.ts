import { native } from "@terse/native-tensor";
import { zeros } from "./factories.ts";
import { GradientWatch } from "./gradient-watch.ts";
import { handleOf, scope } from "./lifetime.ts";
import type { Module, Role } from "./nn/index.ts";
import type { Parameter } from "./nn/parameter.ts";
import { noGrad } from "./no-grad.ts";
import type { Tensor } from "./tensor.ts";

/** One parameter's place in the arena. Lengths and offsets in elements. */
export interface Segment {
  readonly name: string;
  readonly shape: readonly number[];
  readonly offset: number; // a multiple of 64: whole 64-bit words of packed signs
  readonly length: number;
  readonly role: Role;
}

const alignment = 64;

/**
 * All parameters of a module as views of one flat f32 buffer, all their gradients as views of another: an exchange needs no copy,
 * and a fused kernel runs once over the whole model. Values are kept; autograd adds into the gradient buffer in place.
 *
 * Segments stand in the order of `namedParameters()`; a tied parameter has one, a frozen one (requiresGrad false) none.
 * The lanes between two segments are 0 and stay 0.
 */
export class Arena implements Disposable {
  readonly parameters: Tensor; // (N)
  readonly gradients: Tensor; // (N)
  readonly segments: readonly Segment[];
  readonly #leaves: readonly Parameter[];
  readonly #watch: GradientWatch;

  constructor(module: Module) {
    const named = module.namedParameters().filter(([, parameter]) => parameter.requiresGrad);
    if (named.length === 0) throw new Error("Arena: the module has no parameter that requires a gradient");
    const device = named[0]![1].device;
    let end = 0;
    this.segments = named.map(([name, parameter]) => {
      if (parameter.inArena) throw new Error(`Arena: ${name} is in another arena already`);
      if (parameter.dtype !== "f32" || parameter.device !== device)
        throw new Error(
          `Arena: ${name} is ${parameter.dtype} on ${parameter.device}; an arena is f32 on one device, here ${device}`,
        );
      const { shape, length, role } = parameter;
      const segment = { name, shape, offset: end, length, role };
      end = Math.ceil((end + length) / alignment) * alignment;
      return segment;
    });
    this.#leaves = named.map(([, parameter]) => parameter);
    this.#watch = new GradientWatch(this.#leaves);
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

  /** Before the first backward of a step. */
  zeroGradients(): void {
    this.gradients.zero_();
  }

  /**
   * Calls back with a segment's index whenever a backward has completed its gradient, in the order in which backward gets there
   * and while it still works on the others. Returns the function that stops this. A parameter that the loss does not depend on
   * never comes.
   */
  onReady(callback: (segment: number) => void): () => void {
    return this.#watch.add(callback);
  }

  /** Frees both buffers once the parameters are gone too. */
  [Symbol.dispose](): void {
    this.parameters.dispose();
    this.gradients.dispose();
  }
}
