import { expect, it } from "vitest";
import { searchRate } from "./search.ts";

const rates = async (start: number, lossOf: (lr: number) => number, most?: number) => {
  const asked: number[] = [];
  const tried = await searchRate(
    start,
    async (lr) => {
      asked.push(lr);
      return lossOf(lr);
    },
    most === undefined ? {} : { most },
  );
  return { asked, best: tried[0]!.lr };
};

it("tries three rates when the best is in the middle", async () => {
  expect(await rates(1, (lr) => (lr - 1) ** 2)).toEqual({ asked: [0.5, 1, 2], best: 1 });
});

it("goes on from the end at which the best is", async () => {
  expect(await rates(1, (lr) => (Math.log2(lr) + 3) ** 2)).toEqual({
    asked: [0.5, 1, 2, 0.25, 0.125, 0.0625],
    best: 0.125,
  });
  expect(await rates(1, (lr) => (Math.log2(lr) - 2) ** 2)).toEqual({ asked: [0.5, 1, 2, 4, 8], best: 4 });
});

it("stops after so many rates", async () => {
  expect(await rates(1, (lr) => -lr, 4)).toEqual({ asked: [0.5, 1, 2, 4], best: 4 });
});

it("never takes a run that broke off", async () => {
  expect((await rates(1, (lr) => (lr > 0.5 ? Number.NaN : lr))).best).toBeLessThanOrEqual(0.5);
});
