import { checkOptions } from "@terse/native-tensor";
import { call } from "../call.ts";
import type { Tensor } from "../tensor.ts";
import { AdaptableLayer } from "./adaptable-layer.ts";
import { createParameter } from "./create-parameter.ts";
import { inTypeOf } from "./in-type-of.ts";
import { type Pair, pair } from "./pair.ts";
import type { Parameter, Role } from "./parameter.ts";

const paddingModes = ["zeros", "reflect", "replicate", "circular"] as const;

const optionNames = ["stride", "padding", "dilation", "groups"] as const satisfies (keyof ConvolutionOptions)[];

export interface ConvolutionOptions {
  stride?: Pair;
  padding?: Pair | "same" | "valid"; // around the image; same: so much that its size stays, valid: none
  dilation?: Pair; // distance between the points of a filter
  groups?: number; // output channels of a group see the input channels of that group alone
}

/**
 * Cross-correlation:  x (B, in, H, W)   weight (out, in/groups, kh, kw)   bias (out)   → (B, out, H′, W′)
 * H′ = ⌊(H + 2 padding − dilation (kh − 1) − 1) / stride⌋ + 1
 */
export function conv2d(x: Tensor, weight: Tensor, bias?: Tensor | null, options: ConvolutionOptions = {}): Tensor {
  checkOptions("conv2d", options, optionNames);
  const { stride = 1, padding = 0, dilation = 1, groups = 1 } = options;
  const [operator, around] =
    typeof padding === "string" ? ["aten::conv2d.padding", padding] : ["aten::conv2d", pair(padding)];
  return call(operator, x, inTypeOf(x, weight), bias, pair(stride), around, pair(dilation), groups);
}

export interface ConvolutionLayerOptions extends ConvolutionOptions {
  bias?: boolean;
  paddingMode?: (typeof paddingModes)[number]; // what is around the image: zeros, or its own pixels
  role?: Role;
}

/**
 * `outputs` filters over `inputs` channels. Weight and bias start uniform in ±1/√(in/groups · kh · kw), as in PyTorch.
 */
export class Conv2d extends AdaptableLayer {
  readonly weight: Parameter;
  readonly bias: Parameter | null;
  readonly options: ConvolutionOptions;
  readonly paddingMode: (typeof paddingModes)[number];

  constructor(inputs: number, outputs: number, kernelSize: Pair, given: ConvolutionLayerOptions = {}) {
    super();
    checkOptions("Conv2d", given, [...optionNames, "bias", "role", "paddingMode"]);
    const { bias = true, role = "matrix", paddingMode = "zeros", ...options } = given;
    if (!paddingModes.includes(paddingMode))
      throw new RangeError(`Conv2d: paddingMode is ${paddingMode}; give one of ${paddingModes.join(", ")}`);
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
    this.paddingMode = paddingMode;
  }

  /** x (B, in, H, W) → (B, out, H′, W′) */
  forward(x: Tensor): Tensor {
    if (this.paddingMode === "zeros") return this.adapted(x, conv2d(x, this.weight, this.bias, this.options));
    const padded: Tensor = call("aten::pad", x, this.#around(), this.paddingMode, null);
    return this.adapted(x, conv2d(padded, this.weight, this.bias, { ...this.options, padding: 0 }));
  }

  /** Pixels to the left, right, top and bottom. */
  #around(): number[] {
    const { padding = 0, dilation = 1 } = this.options;
    const size = this.weight.shape.slice(2);
    const sides = ([0, 1] as const).map((axis) => {
      if (padding === "valid") return [0, 0];
      if (padding !== "same") return [pair(padding)[axis], pair(padding)[axis]];
      const both = pair(dilation)[axis] * (size[axis]! - 1);
      return [Math.floor(both / 2), Math.ceil(both / 2)];
    });
    return sides.reverse().flat();
  }
}
