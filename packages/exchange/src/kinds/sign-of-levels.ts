/** The sign of the sum of the ranks' levels, by owners: levels.ts. */
import { type Codec, type Floats, ternary } from "@terse/codecs";
import type { Group } from "@terse/collectives";
import type { OwnerScheme } from "../by-owners/by-owners.ts";
import { checkOptions } from "../by-owners/owned-chunks.ts";
import type { Cost } from "../cost.ts";
import { bytesOf, PackedBits, Ternary } from "../packed-bits.ts";
import { scratchOf } from "../scratch.ts";
import type { CodecMessage } from "./codec-message.ts";
import type { Kind } from "./kind.ts";
import { addLevels, levelSumsCost } from "./level-sums.ts";
import { type LevelsOptions, levelSums } from "./levels.ts";
import { viaOwners } from "./via-owners.ts";

type Part = OwnerScheme & { readonly sign: () => Ternary };

/** sign(Σ q): −1, 0 or +1, for any number of ranks. */
export const signOfLevels: Kind<Floats, LevelsOptions, Part, Ternary, CodecMessage<"signOfLevels">> = {
  ...viaOwners,
  ofCodec: [],
  name: "signOfLevels",
  ask: (x, options, { group }) => scheme(group, x, options),
  result: ({ sign }) => sign(),
  cost: (messages, ranks, rank) => messages.map(({ n, codec }) => cost(n, ranks, rank, codec)),
};

/** The sign exists after `handOut`. */
function scheme(group: Group, x: Floats, options: LevelsOptions): Part {
  checkOptions("levels", options.codec, x.length, options);
  const sums = levelSums(options.codec, x.length, group.size, ternary);
  let voted: Ternary | undefined;
  return {
    ...addLevels(group, x, options, sums),
    handOut(results) {
      const scratch = scratchOf(group);
      voted = new Ternary(new PackedBits(x.length, scratch), new PackedBits(x.length, scratch));
      for (const [r, wire] of results.entries()) {
        const at = sums.chunks.starts[r]! / 8;
        voted.plus.wire.set(wire.subarray(0, wire.length / 2), at);
        voted.nonzero.wire.set(wire.subarray(wire.length / 2), at);
      }
    },
    sign: () => voted!,
  };
}

function cost(n: number, ranks: number, rank: number, codec: Codec): Cost {
  const sums = levelSumsCost(levelSums(codec, n, ranks, ternary), rank);
  const wires = 2 * Math.ceil(n / 8); // the owners' wires, held while they are copied into planes
  return { ...sums, peakBytes: Math.max(sums.peakBytes, wires + 2 * bytesOf(n)) };
}
