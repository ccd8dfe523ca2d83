import { expect, it } from "vitest";
import { inTurn } from "./in-turn.ts";

async function* numbers(count: number): AsyncGenerator<number> {
  for (let i = 0; i < count; i++) yield i;
}

async function collected(results: AsyncIterable<number>): Promise<number[]> {
  const all: number[] = [];
  for await (const result of results) all.push(result);
  return all;
}

it("works on several items at once, within a bound, and gives the results in the order of the items", async () => {
  let [working, largest]: [number, number] = [0, 0];
  const work = async (i: number) => {
    largest = Math.max(largest, ++working);
    await new Promise((done) => setTimeout(done, (i * 7) % 5));
    working--;
    return -i;
  };
  const results = await collected(inTurn(numbers(300), work, () => 1));
  expect(results).toEqual(Array.from({ length: 300 }, (_, i) => -i));
  expect(largest).toBeGreaterThan(30);
  expect(largest).toBeLessThan(70);
  largest = 0;
  await collected(inTurn(numbers(20), work, () => 5 << 20));
  expect(largest).toBe(2);
});

it("gives an error in its turn, after the results before it", async () => {
  const results: number[] = [];
  const work = async (i: number) => {
    if (i >= 3) throw new Error(`item ${i}`);
    return i;
  };
  const all = (async () => {
    for await (const result of inTurn(numbers(9), work, () => 1)) results.push(result);
  })();
  await expect(all).rejects.toThrow("item 3");
  expect(results).toEqual([0, 1, 2]);
});
