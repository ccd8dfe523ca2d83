/** The sum of the ranks' levels by one summing all-reduce: levels.ts. */
import type { Codec, Floats } from "@terse/codecs";
import { allReduceBytes } from "@terse/collectives";
import { checkLength, checkOptions, ownedChunks } from "../by-owners/owned-chunks.ts";
import { type Cost, costOf } from "../cost.ts";
import type { ExchangeContext } from "../exchange-context.ts";
import { runStages, type Stage } from "../run-stages.ts";
import type { Loan } from "../scratch.ts";
import { settled } from "../settled.ts";
import { watched } from "../watched.ts";
import type { CodecMessage, CodedVector } from "./codec-message.ts";
import { type Kind, nothing } from "./kind.ts";
import { type SumOfLevelsOptions, summable } from "./levels.ts";

/** into += scale · Σ q by a summing all-reduce. RangeError if no field can hold the sum of this many ranks. */
export const sumOfLevelsDirect: Kind<
  Floats,
  SumOfLevelsOptions,
  DirectRequest,
  void,
  CodecMessage<"sumOfLevelsDirect">
> = {
  name: "sumOfLevelsDirect",
  memory: "host",
  ofCodec: ["into"],
  ask(x, options, { group }) {
    checkOptions("levels", summable(options.codec, group.size), x.length, options);
    checkLength("sumOfLevelsDirect", "into", options.into, x.length, "as x has");
    return { x, options };
  },
  carry: carryDirect,
  result: nothing,
  cost: (messages, ranks, rank) => [directCost(messages, ranks, rank)],
};

interface DirectRequest {
  readonly x: Floats;
  readonly options: SumOfLevelsOptions;
}

/** Several vectors: an all-reduce for all whose fields have elements of one size. */
async function carryDirect(requests: readonly DirectRequest[], context: ExchangeContext): Promise<void> {
  const bySize = Map.groupBy(requests, ({ options }) => elementBytesOf(summable(options.codec, context.size)));
  const sums = [...bySize].map(([elementBytes, sameSize]) => new DirectSum(elementBytes, sameSize, context));
  try {
    const stage: Stage = {
      on: "up",
      encode() {
        for (const sum of sums) sum.encode();
      },
      async call(group, note) {
        await settled(sums.map((sum) => group.allReduce(sum.noted(note), "sum")));
        return sums[0]!.notes;
      },
    };
    await runStages([stage], context);
    watched(context.watch, "decode", () => {
      for (const sum of sums) sum.decode();
    });
  } finally {
    for (const sum of sums) sum[Symbol.dispose]();
  }
}

/** The fields of several vectors, and after them one element for each rank's refusal. */
class DirectSum implements Disposable {
  readonly #parts: readonly (DirectRequest & { readonly codec: Codec; readonly fields: Uint8Array })[];
  readonly #summed: Uint8Array | Uint16Array;
  readonly #notes: Uint8Array | Uint16Array;
  readonly #rank: number;
  readonly #loan: Loan;

  constructor(elementBytes: 1 | 2, requests: readonly DirectRequest[], { rank, size, scratch }: ExchangeContext) {
    const codecs = requests.map(({ options }) => summable(options.codec, size));
    const lengths = requests.map(({ x }, i) => codecs[i]!.wireBytes(x.length));
    const elements = directElements(lengths, elementBytes, size);
    this.#loan = scratch.loan(elementBytes * elements);
    const wire = this.#loan.bytes.fill(0);
    this.#summed = elementBytes === 1 ? wire : new Uint16Array(wire.buffer, wire.byteOffset, elements);
    this.#notes = this.#summed.subarray(elements - size);
    this.#rank = rank;
    let end = 0;
    this.#parts = requests.map((request, i) => {
      const begin = end;
      end += lengths[i]!;
      return { ...request, codec: codecs[i]!, fields: wire.subarray(begin, end) };
    });
  }

  encode(): void {
    for (const { x, options, codec, fields } of this.#parts)
      codec.encode(fields, x, ownedChunks(codec, x.length, 1).call(options, this.#rank));
  }

  /** The vector that the all-reduce adds, with this rank's note. */
  noted(note: number): Uint8Array | Uint16Array {
    this.#notes[this.#rank] = note;
    return this.#summed;
  }

  get notes(): number[] {
    return [...this.#notes];
  }

  decode(): void {
    for (const { codec, options, fields } of this.#parts)
      codec.decodeAdd(options.into, fields, { scale: options.scale ?? 1 });
  }

  [Symbol.dispose](): void {
    this.#loan[Symbol.dispose]();
  }
}

/** The cost for vectors of one round. */
function directCost(vectors: readonly CodedVector[], ranks: number, rank: number): Cost {
  const fields = vectors.map(({ n, codec }) => ({ n, codec: summable(codec, ranks) }));
  const sums = [...Map.groupBy(fields, ({ codec }) => elementBytesOf(codec))].map(([elementBytes, sameSize]) => {
    const lengths = sameSize.map(({ n, codec }) => codec.wireBytes(n));
    return { elementBytes, elements: directElements(lengths, elementBytes, ranks) };
  });
  return costOf(
    sums.map(({ elementBytes, elements }) => allReduceBytes(elements, elementBytes, ranks, rank)),
    sums.reduce((bytes, { elementBytes, elements }) => bytes + elementBytes * elements, 0),
  );
}

const elementBytesOf = ({ parameters }: Codec): 1 | 2 => (parameters.width === 16 ? 2 : 1);

/** The length of the direct sum: the fields of all vectors, and after them one element for each rank's refusal. */
const directElements = (lengths: readonly number[], elementBytes: number, ranks: number): number =>
  lengths.reduce((sum, bytes) => sum + bytes / elementBytes, ranks);
