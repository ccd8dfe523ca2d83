/**
 * The two blocks of a ResNet: x (B, C, H, W) → (B, C′, H/stride, W/stride). y = relu(F(x) + x); where its shape
 * changes, x goes through a 1×1 convolution.
 */
import { BatchNorm2d, Conv2d, Module, Sequential, type Tensor } from "@terse/tensor";

const conv = (inputs: number, outputs: number, size: 1 | 3, stride = 1) =>
  new Conv2d(inputs, outputs, size, { stride, padding: size === 3 ? 1 : 0, bias: false });

/** The shortcut that changes the shape of x, or null where it stays. */
const shortcut = (inputs: number, outputs: number, stride: number) =>
  inputs === outputs && stride === 1
    ? null
    : new Sequential(conv(inputs, outputs, 1, stride), new BatchNorm2d(outputs));

/** 3×3, 3×3. He et al. 2016, figure 5 left. */
export class BasicBlock extends Module {
  static readonly expansion = 1; // C′ = width · expansion

  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly downsample: Sequential | null;

  constructor(inputs: number, width: number, stride: number) {
    super();
    this.conv1 = conv(inputs, width, 3, stride);
    this.bn1 = new BatchNorm2d(width);
    this.conv2 = conv(width, width, 3);
    this.bn2 = new BatchNorm2d(width);
    this.downsample = shortcut(inputs, width, stride);
  }

  forward(x: Tensor): Tensor {
    const y = this.bn1.forward(this.conv1.forward(x)).relu_();
    return this.bn2
      .forward(this.conv2.forward(y))
      .add_(this.downsample?.forward(x) ?? x)
      .relu_();
  }
}

/** 1×1, 3×3, 1×1. He et al. 2016, figure 5 right; the stride is in the 3×3, as in torchvision. */
export class Bottleneck extends Module {
  static readonly expansion = 4;

  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly conv3: Conv2d;
  readonly bn3: BatchNorm2d;
  readonly downsample: Sequential | null;

  constructor(inputs: number, width: number, stride: number) {
    super();
    const outputs = width * Bottleneck.expansion;
    this.conv1 = conv(inputs, width, 1);
    this.bn1 = new BatchNorm2d(width);
    this.conv2 = conv(width, width, 3, stride);
    this.bn2 = new BatchNorm2d(width);
    this.conv3 = conv(width, outputs, 1);
    this.bn3 = new BatchNorm2d(outputs);
    this.downsample = shortcut(inputs, outputs, stride);
  }

  forward(x: Tensor): Tensor {
    let y = this.bn1.forward(this.conv1.forward(x)).relu_();
    y = this.bn2.forward(this.conv2.forward(y)).relu_();
    return this.bn3
      .forward(this.conv3.forward(y))
      .add_(this.downsample?.forward(x) ?? x)
      .relu_();
  }
}
