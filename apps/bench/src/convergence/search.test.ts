import { readRecipe } from "@terse/train/recipe";
import { warmupWithin } from "@terse/train/schedule";
import { expect, it } from "vitest";
import { recipe } from "./convergence.ts";
import { among, doubling, refinedRate, type Settings, search } from "./search.ts";
import { overridesOf, searchOf } from "./settings.ts";

/** What a search asks for, in its order, and what it finds. */
async function searched<S extends Settings>(
  start: S,
  axes: Parameters<typeof search<S>>[1],
  lossOf: (settings: S) => number,
  options: Partial<Parameters<typeof search<S>>[3]> = {},
) {
  const asked: S[] = [];
  const one = async (settings: S) => {
    asked.push(settings);
    return lossOf(settings);
  };
  const { tried, atEdge } = await search(start, axes, one, { most: 20, ...options });
  return { asked, best: tried[0]!.settings, atEdge };
}

const rates = async (start: number, lossOf: (lr: number) => number, most = 6) => {
  const { asked, best, atEdge } = await searched({ lr: start }, { lr: doubling }, ({ lr }) => lossOf(lr), { most });
  return { asked: asked.map(({ lr }) => lr), best: best.lr, atEdge };
};

it("tries three rates when the best is in the middle", async () => {
  expect(await rates(1, (lr) => (lr - 1) ** 2)).toEqual({ asked: [1, 0.5, 2], best: 1, atEdge: [] });
});

it("goes on from the end at which the best is", async () => {
  expect(await rates(1, (lr) => (Math.log2(lr) + 3) ** 2)).toEqual({
    asked: [1, 0.5, 2, 0.25, 0.125, 0.0625],
    best: 0.125,
    atEdge: [],
  });
  expect(await rates(1, (lr) => (Math.log2(lr) - 2) ** 2)).toEqual({ asked: [1, 0.5, 2, 4, 8], best: 4, atEdge: [] });
});

it("stops after so many runs, and says that the best lies at an edge", async () => {
  expect(await rates(1, (lr) => -lr, 4)).toEqual({ asked: [1, 0.5, 2, 4], best: 4, atEdge: ["lr"] });
});

it("never takes a run that broke off", async () => {
  expect((await rates(1, (lr) => (lr > 0.5 ? Number.NaN : lr))).best).toBeLessThanOrEqual(0.5);
});

const warmup = among([0.05, 0.1, 0.3, 0.5, 0.7]);

it("finds settings that depend on each other: a larger rate, with a longer warm-up", async () => {
  const bowl = ({ lr, warmup }: { lr: number; warmup: number }) =>
    (Math.log2(lr / 8) - 4 * (warmup - 0.5)) ** 2 + (warmup - 0.5) ** 2;
  const { best, atEdge, asked } = await searched({ lr: 2, warmup: 0.3 }, { lr: doubling, warmup }, bowl, {
    together: ["lr", "warmup"],
  });
  expect(best).toEqual({ lr: 8, warmup: 0.5 });
  expect(atEdge).toEqual([]);
  expect(asked.length).toBe(new Set(asked.map(({ lr, warmup }) => `${lr} ${warmup}`)).size); // none twice
  expect(asked.slice(0, 5).map(({ warmup }) => warmup)).toEqual([0.3, 0.3, 0.3, 0.1, 0.5]); // 10, 30 and 50 % for all
});

it("says so where the best is the last of a list", async () => {
  const { best, atEdge } = await searched({ lr: 1, warmup: 0.3 }, { lr: doubling, warmup }, ({ lr, warmup }) => {
    return Math.log2(lr) ** 2 - warmup;
  });
  expect(best).toEqual({ lr: 1, warmup: 0.7 });
  expect(atEdge).toEqual(["warmup"]);
});

it("refines the rate once, within the same number of runs", async () => {
  const options = { most: 7, refined: refinedRate<{ lr: number }> };
  const { asked, best } = await searched({ lr: 2 }, { lr: doubling }, ({ lr }) => (Math.log2(lr) - 1.5) ** 2, options);
  expect(asked.map(({ lr }) => lr)).toEqual([2, 1, 4, 1.41, 2.83]);
  expect(best.lr).toBe(2.83);
  expect((await searched({ lr: 1 }, { lr: doubling }, ({ lr }) => -lr, options)).asked.length).toBe(7);
});

it("refuses a start that its list has not", async () => {
  await expect(searched({ lr: 1, warmup: 0.2 }, { lr: doubling, warmup }, () => 1)).rejects.toThrow(
    "the axis has 0.05, 0.1, 0.3, 0.5, 0.7, and not 0.2: begin at one of these",
  );
});

it("tries no warm-up that a recipe would cut to another", () => {
  const { start, axes } = searchOf({}, 1e-3, []);
  const [steps, parts] = [400, [start["warmup"]!]];
  for (let longer = axes["warmup"]!(parts[0]!)[1]; longer !== undefined; longer = axes["warmup"]!(longer)[1])
    parts.push(longer);
  const given = parts.map((warmup) => [...overridesOf({ warmup }, steps), `steps=${steps}`]);
  const taken = given.map((overrides) => {
    const { schedule, steps } = readRecipe(recipe, overrides);
    return warmupWithin(schedule.warmup, steps);
  });
  expect(taken).toEqual(parts.map((part) => part * steps));
});
