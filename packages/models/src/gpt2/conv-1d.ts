import { AdaptableLayer, createParameter, linear, type Parameter, type Tensor } from "@terse/tensor";

/**
 * transformers' Conv1D: a linear layer whose weight is stored transposed.
 * y = x W + b:  x (…, in)   W (in, out)   b (out)   y (…, out)
 */
export class Conv1D extends AdaptableLayer {
  readonly weight: Parameter;
  readonly bias: Parameter;

  constructor(inputs: number, outputs: number) {
    super();
    this.weight = createParameter([inputs, outputs], "matrix", (W) => W.normal_({ std: 0.02 }));
    this.bias = createParameter([outputs], "vector", (b) => b.zero_());
  }

  forward(x: Tensor): Tensor {
    return this.adapted(x, linear(x, this.weight.T, this.bias));
  }
}
