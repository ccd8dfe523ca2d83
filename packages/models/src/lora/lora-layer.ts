import {
  type AdaptableLayer,
  Conv2d,
  call,
  cat,
  Dropout,
  LayerAdapter,
  Linear,
  type Module,
  noGrad,
  type Parameter,
  scope,
  type Tensor,
} from "@terse/tensor";

/** A ΔW of low rank for some rows of a layer's weight: all of them, or those of query, key or value. */
export interface LoraPart {
  readonly name: string; // of its parameters in the layer; "" where the layer has one part
  readonly index: number; // of the rows, which are cut into equal parts
  readonly loraA: Linear | Conv2d; // (r, in)
  readonly loraB: Linear | Conv2d; // (out / parts, r)
}

/** What a part is made of. */
export interface LoraPartShape {
  readonly rank: number;
  readonly parts: number;
}

/** Whether the layer's weight is stored as (in, out): PEFT's fan_in_fan_out. */
export const isTransposed = (layer: AdaptableLayer) => !(layer instanceof Linear || layer instanceof Conv2d);

/** A from U(−1/√in, 1/√in), which is Kaiming's with a = √5, and B of zeros, so that the model begins as its base. */
export function createPart(layer: AdaptableLayer, { rank, parts }: LoraPartShape): Pick<LoraPart, "loraA" | "loraB"> {
  const { shape, device } = layer.weight;
  const [outputs, inputs] = isTransposed(layer) ? [shape[1]!, shape[0]!] : [shape[0]!, shape[1]!];
  const [loraA, loraB] =
    layer instanceof Conv2d
      ? [
          new Conv2d(inputs, rank, shape.slice(2) as [number, number], { ...layer.options, bias: false }),
          new Conv2d(rank, outputs / parts, 1, { bias: false }),
        ]
      : [new Linear(inputs, rank, { bias: false }), new Linear(rank, outputs / parts, { bias: false })];
  noGrad(() => void loraB.weight.zero_());
  if (device === "cpu" || device === "meta") return { loraA, loraB };
  return { loraA: loraA.to({ device }), loraB: loraB.to({ device }) };
}

/**
 * LoRA of one layer, Hu et al. 2021, https://arxiv.org/abs/2106.09685, §4.1:  y + s · dropout(x) Aᵀ Bᵀ
 *
 *   x (…, in)   y (…, out)   A (r, in)   B (out, r)   s: `scaling`
 */
export class LoraLayer extends LayerAdapter {
  readonly parts: readonly LoraPart[]; // in the order of the rows; rows without a part stay the base's
  readonly count: number; // parts in which the rows are cut
  readonly scaling: number;
  readonly dropout: Dropout | null;

  constructor(parts: readonly LoraPart[], { count, scaling, p }: { count: number; scaling: number; p: number }) {
    super();
    this.parts = parts;
    this.count = count;
    this.scaling = scaling;
    this.dropout = p > 0 ? new Dropout(p) : null;
  }

  forward(x: Tensor, y: Tensor): Tensor {
    const [first] = this.parts as [LoraPart];
    if (first.loraA instanceof Conv2d) return y.add(this.#low(first, x).mul(this.scaling));
    return scope(() => {
      const read = this.dropout?.forward(x) ?? x;
      if (this.count === 1) return this.#added(first, read, y);
      const axis = y.shape.length - 1;
      const width = y.shape[axis]! / this.count;
      const rows = Array.from({ length: this.count }, (_, i) => {
        const own = y.narrow(axis, i * width, width);
        const part = this.parts.find(({ index }) => index === i);
        return part ? this.#added(part, read, own) : own;
      });
      return cat(rows, axis);
    });
  }

  /** y + s (x Aᵀ) Bᵀ in one pass over y. */
  #added({ loraA, loraB }: LoraPart, x: Tensor, y: Tensor): Tensor {
    const [width, rank] = loraB.weight.shape as [number, number];
    const low = (loraA as Linear).forward(x).mul(this.scaling); // (…, r)
    const sum: Tensor = call("aten::addmm", y.reshape(-1, width), low.reshape(-1, rank), loraB.weight.T);
    return sum.view(...y.shape);
  }

  #low({ loraA, loraB }: LoraPart, x: Tensor): Tensor {
    return loraB.forward(loraA.forward(this.dropout?.forward(x) ?? x));
  }

  /** Adds s B A to the weight of its layer. */
  mergeInto(layer: AdaptableLayer): void {
    noGrad(() =>
      scope(() => {
        const { weight } = layer;
        for (const { index, loraA, loraB } of this.parts) {
          const [a, b] = [loraA.weight.flatten(1), loraB.weight.flatten(1)];
          const delta = b.matmul(a).mul(this.scaling); // (out / parts, in)
          const rows = isTransposed(layer) ? weight.T : weight;
          const height = rows.shape[0]! / this.count;
          const own = rows.narrow(0, index * height, height);
          own.add_(delta.view(...own.shape).to(weight.dtype));
        }
      }),
    );
  }

  /** PEFT's names: lora_A and lora_B. */
  override children(): [name: string, module: Module][] {
    const own: [string, Module][] = this.parts.flatMap(({ name, loraA, loraB }): [string, Module][] => {
      const prefix = name === "" ? "" : `${name}.`;
      return [
        [`${prefix}lora_A`, loraA],
        [`${prefix}lora_B`, loraB],
      ];
    });
    return this.dropout === null ? own : [...own, ["lora_dropout", this.dropout]];
  }

  /** The parameters of a part, by what follows the module's name in a file of PEFT. */
  parametersOf({ loraA, loraB }: LoraPart): [suffix: string, parameter: Parameter][] {
    return [
      ["lora_A.weight", loraA.weight],
      ["lora_B.weight", loraB.weight],
    ];
  }
}
