import { type Handle, native } from "@terse/native-tensor";
import { handleOf } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";
import { createParameter } from "./create-parameter.ts";
import { Module } from "./module.ts";
import { type Pair, pair } from "./pair.ts";
import type { Parameter, Role } from "./parameter.ts";

const id = native.find("aten::conv2d");

export interface ConvolutionOptions {
  stride?: Pair;
  padding?: Pair; // zeros around the image
  dilation?: Pair; // distance between the points of a filter
  groups?: number; // output channels of a group see the input channels of that group alone
}

/**
 * Cross-correlation:  x (B, in, H, W)   weight (out, in/groups, kh, kw)   bias (out)   → (B, out, H′, W′)
 * H′ = ⌊(H + 2 padding − dilation (kh − 1) − 1) / stride⌋ + 1
 */
export function conv2d(
  x: Tensor,
  weight: Tensor,
  bias?: Tensor | null,
  { stride = 1, padding = 0, dilation = 1, groups = 1 }: ConvolutionOptions = {},
): Tensor {
  return new Tensor(
    native.call(
      id,
      handleOf(x),
      handleOf(weight),
      bias ? handleOf(bias) : null,
      pair(stride),
      pair(padding),
      pair(dilation),
      groups,
    ) as Handle,
  );
}

/** A layer of `outputs` filters over `inputs` channels. Weight and bias are initialised as in PyTorch, uniform in ±1/√(in/groups · kh · kw). */
export class Conv2d extends Module {
  readonly weight: Parameter;
  readonly bias: Parameter | null;
  readonly options: ConvolutionOptions;

  constructor(
    inputs: number,
    outputs: number,
    kernelSize: Pair,
    { bias = true, role = "matrix", ...options }: ConvolutionOptions & { bias?: boolean; role?: Role } = {},
  ) {
    super();
    const { groups = 1 } = options;
    if (inputs % groups !== 0 || outputs % groups !== 0)
      throw new RangeError(
        `Conv2d: ${inputs} input and ${outputs} output channels do not divide into ${groups} groups; make both multiples of groups`,
      );
    const [height, width] = pair(kernelSize);
    const seen = (inputs / groups) * height * width; // values that one output sees
    const bound = seen > 0 ? 1 / Math.sqrt(seen) : 0;
    this.weight = createParameter([outputs, inputs / groups, height, width], role, (w) => w.uniform_(-bound, bound));
    this.bias = bias ? createParameter([outputs], "vector", (b) => b.uniform_(-bound, bound)) : null;
    this.options = options;
  }

  /** x (B, in, H, W) → (B, out, H′, W′) */
  forward(x: Tensor): Tensor {
    return conv2d(x, this.weight, this.bias, this.options);
  }
}
