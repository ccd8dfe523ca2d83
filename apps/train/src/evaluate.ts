import type { Group } from "@terse/collectives";
import type { TextData } from "@terse/data";
import type { Gpt } from "@terse/models";
import { noGrad, scope } from "@terse/tensor";

/** Mean loss on the validation text, in nats a token; each rank takes a share, all get the same answer. NaN without a text. */
export async function evaluate(model: Gpt, data: TextData, windows: number, group: Group): Promise<number> {
  const sum = new Float64Array(2); // losses, rows
  model.eval();
  for (const { tokens, next } of data.validation({ windows, sharded: true })) {
    scope(() => {
      const rows = tokens.shape[0]!;
      sum[0]! += rows * noGrad(() => model.loss(tokens, next).item());
      sum[1]! += rows;
    });
    tokens.dispose();
    next.dispose();
  }
  model.train();
  await group.allReduce(sum);
  return sum[0]! / sum[1]!;
}
