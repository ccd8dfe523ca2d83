import { expect, it } from "vitest";
import { countKinds, leastTimes, meansByBytes, secondsOf, timesByBytes } from "./times.ts";

const steps = (...kinds: readonly (readonly [bytes: number, milliseconds: number])[]) =>
  kinds.map(([bytes, milliseconds]) => ({ bytes, milliseconds }));

it("takes the median of each kind of step, without the first ones", () => {
  const times = timesByBytes(steps([800, 999], [800, 99], [800, 20], [800, 22], [25, 90], [25, 5], [25, 7], [0, 4]));
  expect([...times]).toEqual([
    [800, 21],
    [25, 6],
    [0, 4],
  ]);
});

it("takes means of whole intervals, without the first", () => {
  const first = [
    [0, 900],
    [0, 90],
    [800, 99],
  ] as const;
  const times = meansByBytes(steps(...first, [0, 5], [0, 3], [800, 20], [0, 3], [0, 1], [800, 30], [0, 77]), 3);
  expect([...times]).toEqual([
    [0, 3],
    [800, 25],
  ]);
});

it("takes the lesser time of each kind of step in two runs", () => {
  const first = new Map([
    [800, 21],
    [25, 6],
  ]);
  const second = new Map([
    [800, 35],
    [25, 5],
    [0, 4],
  ]);
  expect([...leastTimes([first, second])]).toEqual([
    [800, 21],
    [25, 5],
    [0, 4],
  ]);
});

it("adds up the steps of a run, those of unknown bytes as the nearest kind", () => {
  const times = new Map([
    [800, 2000],
    [25, 500],
    [0, 250],
  ]);
  expect([...countKinds([800, 0, 0])]).toEqual([
    [800, 1],
    [0, 2],
  ]);
  expect(secondsOf(countKinds([800, 700, 25, 30, 0, 0]), times)).toBe(2 + 2 + 0.5 + 0.5 + 0.25 + 0.25);
});
