import { loopback } from "@terse/collectives";
import { expect, it } from "vitest";
import { hostsOfRanks } from "./hosts-of-ranks.ts";

const asks = { choice: "exchange.vote: hierarchical", key: "exchange.ranksPerHost" };

/** What every rank gets, where rank r is number `places[r][0]` of the `places[r][1]` ranks on its host. */
async function hosts(...places: [localRank: number, localSize: number][]) {
  const groups = loopback(places.length);
  const found = groups.map((group, rank) =>
    hostsOfRanks(group, { localRank: places[rank]![0], localSize: places[rank]![1] }, asks).catch(
      (error: Error) => error,
    ),
  );
  const all = await Promise.all(found);
  await Promise.all(groups.map((group) => group.close()));
  for (const one of all) expect(one).toEqual(all[0]);
  return all[0];
}

it("takes the hosts from the launcher's numbers, also where one host has fewer ranks", async () => {
  expect(await hosts([0, 2], [1, 2], [0, 2], [1, 2])).toEqual([0, 0, 2, 2]);
  expect(await hosts([0, 3], [1, 3], [2, 3], [0, 1])).toEqual([0, 0, 0, 3]);
  expect(await hosts([0, 1], [0, 1])).toEqual([0, 1]);
});

it("refuses ranks of one host that do not follow each other", async () => {
  const error = (await hosts([0, 2], [0, 2], [1, 2], [1, 2])) as Error;
  expect(error.message).toMatch(
    /rank 0 is number 0 of the 2 ranks on its host, and these do not follow each other; .* or set exchange\.ranksPerHost/,
  );
});
