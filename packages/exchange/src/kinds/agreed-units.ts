import type { Codec, Floats } from "@terse/codecs";
import type { ExchangeContext } from "../exchange-context.ts";
import { StepRefusedError } from "../refusal.ts";
import type { Stage } from "../run-stages.ts";
import type { Loan } from "../scratch.ts";
import { type FieldsLayout, layoutOf } from "./fields-layout.ts";

/** The units of the scale groups of each vector, on which the ranks agree in one all-reduce. */
export class AgreedUnits implements Disposable {
  readonly units: readonly Float32Array[];
  readonly stage: Stage;
  readonly #all: Float32Array; // of all vectors, and after them one element for the refusal
  readonly #layouts: readonly FieldsLayout[];
  readonly #loan: Loan;

  constructor(
    vectors: readonly { readonly x: Floats; readonly codec: Codec }[],
    { rank, size, scratch }: ExchangeContext,
  ) {
    this.#layouts = vectors.map(({ x, codec }) => layoutOf(codec, x.length, size));
    const begins = [0];
    for (const [i, { groups }] of this.#layouts.entries()) begins.push(begins[i]! + groups);
    this.#loan = scratch.loan(4 * (begins.at(-1)! + 1));
    this.#all = this.#loan.floats;
    this.units = this.#layouts.map(({ groups }, i) => this.#all.subarray(begins[i]!, begins[i]! + groups));
    this.stage = {
      on: "up",
      encode: () => {
        for (const [i, { x, codec }] of vectors.entries()) codec.scales(x, this.units[i]!);
      },
      call: async (group, note) => {
        if (note) this.#all.fill(0);
        // A lower rank has a larger number, so the maximum names the first rank that refuses.
        this.#all[this.#all.length - 1] = note ? notes * (size - rank) + note : 0;
        await group.allReduce(this.#all, "max");
        const refusal = this.#all.at(-1)!;
        const first = size - Math.floor(refusal / notes);
        return Array.from({ length: size }, (_, r) => (r === first ? refusal % notes : 0));
      },
      arrived: () => this.#toUnits(),
    };
  }

  /** All scales → units. Throws a StepRefusedError, on every rank alike, where a sum could be beyond fp32. */
  #toUnits(): void {
    for (const [v, { unitOf, largestField }] of this.#layouts.entries()) {
      const of = this.units[v]!;
      for (let i = 0; i < of.length; i++) of[i] = unitOf(of[i]!);
      if (!of.every((unit) => unit * largestField <= largestFloat))
        throw new StepRefusedError(undefined, "a value is beyond what its codec can write");
    }
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

const notes = 128; // a note is 0 to 127
const largestFloat = 3.4028234663852886e38;
