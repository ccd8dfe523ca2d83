import {
  arange,
  checkpoint,
  crossEntropy,
  KeyValueCache,
  Module,
  noGrad,
  packedMask,
  scope,
  type Tensor,
} from "@terse/tensor";
import type { TextModel } from "./model.ts";
import { toDevice } from "./to-device.ts";

export interface TokensAndNext {
  readonly tokens: Tensor; // (B, T) i64
  readonly next: Tensor; // (B, T) i64: the token after each, −100 where it is not learned
  /** (B, T) i64, where several texts are packed into a row: counted in each text, which sees itself alone. */
  readonly positions?: Tensor;
}

/** What models that continue a text have in common: the loss of the next token, and caches. */
export abstract class LanguageModel extends Module implements TextModel {
  abstract readonly config: object;
  abstract readonly shape: { readonly vocabulary: number; readonly context: number; readonly layers: number };
  activationCheckpointing = false;
  /** The device of the weights. */
  protected abstract readonly device: string;

  /**
   * tokens (B, T) → logits (B, T, V). `caches`, one for each layer, have what precedes the tokens. `packed` are the
   * positions (B, T) of rows with several texts.
   */
  abstract forward(tokens: Tensor, caches?: readonly KeyValueCache[], packed?: Tensor): Tensor;

  /** Mean cross entropy of the next token, in nats, over those that are learned. → () */
  loss({ tokens, next, positions }: TokensAndNext): Tensor {
    return scope(() => crossEntropy(this.forward(tokens, undefined, positions), toDevice(this.device, next)));
  }

  metrics(batch: TokensAndNext): { loss: Tensor } {
    return { loss: this.loss(batch) };
  }

  metricUnits(unit: string): { loss: string } {
    return { loss: `nats per ${unit}` };
  }

  nextLogits(tokens: Tensor, caches?: readonly KeyValueCache[]): Tensor {
    return this.forward(tokens, caches)
      .select(1, tokens.shape[1]! - 1)
      .flatten();
  }

  createCaches(positions = this.context): KeyValueCache[] {
    return Array.from({ length: this.shape.layers }, () => new KeyValueCache(Math.min(positions, this.context)));
  }

  get context(): number {
    return this.shape.context;
  }

  get vocabulary(): number {
    return this.shape.vocabulary;
  }

  /** The output of a block, which backward computes again with activation checkpointing: never where caches grow. */
  protected throughBlock(
    block: (...inputs: Tensor[]) => Tensor,
    caches: readonly KeyValueCache[] | undefined,
    ...inputs: readonly (Tensor | undefined)[]
  ): Tensor {
    const known = inputs.filter((input) => input !== undefined);
    return this.activationCheckpointing && !caches ? checkpoint(block, ...known) : scope(() => block(...known));
  }

  /**
   * Weights from N(0, 0.02²); σ is divided by √(2 layers) for those that write into the residual stream. Norms and
   * biases stay. Radford et al. 2019, §2.3.
   */
  protected initialiseAsGpt2(isResidual: (name: string) => boolean): void {
    noGrad(() => {
      for (const [name, parameter] of this.namedParameters())
        if (parameter.shape.length >= 2)
          parameter.normal_({ std: isResidual(name) ? 0.02 / Math.sqrt(2 * this.shape.layers) : 0.02 });
    });
  }

  /**
   * The positions (T) of tokens that follow those of the caches; or `packed` (B, T), and what each token then attends
   * to (B, 1, T, T). Throws `RangeError` where the context has fewer.
   */
  protected placesOf(
    tokens: Tensor,
    caches?: readonly KeyValueCache[],
    packed?: Tensor,
  ): { positions: Tensor; mask?: Tensor } {
    const past = caches?.[0]?.length ?? 0;
    const end = past + tokens.shape[1]!;
    if (end > this.context)
      throw new RangeError(
        `${this.constructor.name}: ${end} tokens do not fit its context of ${this.context}; shorten the sequence, or use a larger context`,
      );
    if (packed === undefined) return { positions: arange(past, end, 1, { dtype: "i64", device: this.device }) };
    const positions = toDevice(this.device, packed);
    return { positions, mask: packedMask(positions) };
  }
}
