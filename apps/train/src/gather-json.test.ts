import { isObject } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { expect, it } from "vitest";
import { gatherJson } from "./gather-json.ts";
import { gatherTexts } from "./gather-texts.ts";
import { onEveryRank } from "./saves/on-every-rank.ts";
import { shareCores } from "./share-cores.ts";

const pair = () => loopback(2) as unknown as [ReturnType<typeof loopback>[0], ReturnType<typeof loopback>[0]];
const lies = ["", "{", "null", "[]", "7", '"x"'];

it("gathers the values of all ranks", async () => {
  expect(await Promise.all(pair().map((group) => gatherJson(group, { rank: group.rank }, isObject)))).toEqual(
    Array(2).fill([{ rank: 0 }, { rank: 1 }]),
  );
});

it.each(lies)("names the rank whose value is something else: %j", async (lie) => {
  for (const ask of [(group: Parameters<typeof onEveryRank>[0]) => onEveryRank(group, () => 1), shareCores]) {
    const [honest, liar] = pair();
    const lied = gatherTexts(liar, lie);
    await expect(ask(honest)).rejects.toThrow("rank 1 sent what no rank sends here");
    await lied;
  }
});

it.each([-1, 0.5, Number.NaN, 2 ** 24 + 1, 1e15])(
  "names the rank whose text has an impossible length: %d",
  async (length) => {
    const [honest, liar] = pair();
    const lied = liar.allGather([Float64Array.of(0), Float64Array.of(length)]);
    await expect(gatherTexts(honest, "mine")).rejects.toThrow(`rank 1 announced a text of ${length} bytes`);
    await lied;
  },
);
