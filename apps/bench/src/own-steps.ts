/** Training steps of a model that is alone in its world, to compare with those of a peer. */
import { loopback } from "@terse/collectives";
import type { Model } from "@terse/models";
import { Optimizer, type OptimizerOptions } from "@terse/optimizers";
import { Arena, scope } from "@terse/tensor";
import { type Forward, inF32 } from "@terse/train/precision";

interface Options {
  readonly optimizer: OptimizerOptions;
  readonly lr: number;
  readonly batch: () => object;
  readonly forward?: Forward;
}

export class OwnSteps implements AsyncDisposable {
  readonly model: Model;
  readonly #group = loopback(1)[0]!;
  readonly #options: Options;
  readonly #arena: Arena;
  readonly #optimizer: Optimizer;

  constructor(model: Model, options: Options) {
    this.model = model;
    this.#options = options;
    this.#arena = new Arena(model);
    this.#optimizer = new Optimizer(this.#arena, this.#group, { ...options.optimizer, compareEvery: 0 });
  }

  /** The loss of a step. On a GPU it waits for the device, as PyTorch's side does. */
  take(): Promise<number> {
    const { lr, batch, forward = inF32 } = this.#options;
    return scope(async () => {
      this.#arena.replaceGradients();
      const loss = forward(() => this.model.loss(batch()));
      await loss.backward();
      const value = loss.item();
      await this.#optimizer.step({ lr, loss: value });
      return value;
    });
  }

  /** The seconds of a step, over so many. */
  async seconds(steps: number): Promise<number> {
    const began = performance.now();
    for (let i = 0; i < steps; i++) await this.take();
    return (performance.now() - began) / 1000 / steps;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#group.close();
    this.model.dispose();
    await this.#optimizer[Symbol.asyncDispose]();
  }
}
