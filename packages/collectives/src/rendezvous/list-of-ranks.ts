/** "rank 3", "ranks 1, 2" */
export const listOfRanks = (ranks: readonly number[]): string =>
  `${ranks.length === 1 ? "rank" : "ranks"} ${ranks.join(", ")}`;
