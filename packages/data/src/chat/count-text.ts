/** "1 row", "2,000 rows". */
export const countText = (count: number, what: string): string =>
  `${count.toLocaleString("en-US")} ${what}${count === 1 ? "" : "s"}`;
