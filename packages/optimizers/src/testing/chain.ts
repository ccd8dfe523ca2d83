/** For tests: a chain of small layers, each with a weight and a bias, and inputs that anyone can make again. */
import { fromTypedArray, Linear, Module, ModuleList, noGrad, type Tensor } from "@terse/tensor";

export const layers = 6;
const narrow = 12;

export class Chain extends Module {
  readonly layers: ModuleList<Linear>;

  constructor(width = narrow) {
    super();
    this.layers = new ModuleList(Array.from({ length: layers }, () => new Linear(width, width)));
    let at = 0;
    for (const [, parameter] of this.namedParameters()) {
      const values = Float32Array.from({ length: parameter.length }, () => Math.sin(++at) / 3);
      noGrad(() => parameter.copy_(fromTypedArray(values, parameter.shape)));
    }
  }

  /** `skips`: layers whose parameters the loss does not depend on. */
  loss(x: Tensor, skips: readonly number[] = []): Tensor {
    for (const [i, layer] of [...this.layers].entries()) if (!skips.includes(i)) x = x.add(layer.forward(x).silu());
    return x.mul(x).mean();
  }
}

/** (2, width), of a rank, a step and a micro-batch. */
export const input = (rank: number, step: number, part = 0, width = narrow): Tensor =>
  fromTypedArray(
    Float32Array.from({ length: 2 * width }, (_, i) => Math.cos(i * 3.7 + rank * 11.3 + step * 5.9 + part * 2.1)),
    [2, width],
  );
