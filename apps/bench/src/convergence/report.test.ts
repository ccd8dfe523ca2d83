import { expect, it } from "vitest";
import { byCase } from "../measurement.ts";
import { recipePicture, recipeReport } from "../recipe/report.ts";
import type { RecordedLine } from "../recording.ts";
import { curvesOf, fastestPeer } from "./curves.ts";
import { expectations, expectationsTable } from "./expectations.ts";
import { methods } from "./methods.ts";
import { convergencePicture, convergenceReport } from "./report.ts";

const line = (method: string, name: string, metric: string, value: number): RecordedLine => ({
  bench: "convergence",
  setting: method,
  recorded: "2026-11-22T10:00Z",
  machine: "a machine",
  case: name,
  metric,
  value,
  unit: "",
});

const linesOf = (losses: Readonly<Record<string, readonly number[]>>, more: readonly RecordedLine[] = []) => [
  ...Object.entries(losses).flatMap(([method, last], i) => [
    ...last.flatMap((loss, seed) =>
      Object.entries({ validation_loss: loss, lr: 0.004, loss_at_0: 5.6, loss_at_20: loss + 1, loss_at_40: loss }).map(
        ([metric, value]) => line(method, `${method}, seed ${seed + 1}`, metric, value),
      ),
    ),
    line(method, method, "sent_per_step", i === 0 ? 32e6 : 1e6),
  ]),
  ...more,
];

const machine = { machine: "a machine", when: "today" };

it("give the mean over the seeds, the least and the most, and ratios within a seed", () => {
  const [adamw, lion] = curvesOf(linesOf({ adamw: [2, 2.2, 2.1], lion: [2.1, 2.2, 2.2] }));
  expect(adamw).toMatchObject({ method: "adamw", seeds: 3, last: { least: 2, most: 2.2 }, ratio: { mean: 1 } });
  expect(adamw!.last.mean).toBeCloseTo(2.1, 12);
  expect(lion!.ratio.most).toBeCloseTo(1.05, 12);
  expect(lion!.ratio.least).toBe(1);
  expect(lion!.points.map(({ step }) => step)).toEqual([0, 20, 40]);
  expect(lion!.bytesAfter(40)).toBe(40e6);
  expect(lion!.secondsAfter("100mbit", 40)).toBeUndefined();
});

it("say of each expectation whose methods are recorded whether it is seen, with the ratio of the losses with the same seed", () => {
  const rows = expectationsTable(
    linesOf({ lion: [2, 4], "lion-cub": [2.02, 4.04], "lion-cub-8-bits": [2.1, 4.2], "lion-cub-ties-minus": [2.1, 4] }),
  ).split("\n");
  const below = expectationsTable(linesOf({ "lion-beta-0.95": [2, 4], "lion-cub-8-bits-beta-0.95": [1.8, 3.6] }));
  expect(below).toContain("| lion-cub-8-bits-beta-0.95 ÷ lion-beta-0.95 | 0.900 (0.900 to 0.900) | yes |");
  expect(rows.slice(2)).toEqual([
    "| Lion Cub | 8 bits are as good as dense Lion, β₂ 0.99 | lion-cub-8-bits ÷ lion | 1.050 (1.050 to 1.050) | **no** |",
    "| Lion Cub | 1 bit is as good as dense Lion, β₂ 0.99 | lion-cub ÷ lion | 1.010 (1.010 to 1.010) | yes |",
    "| Lion Cub | 1 bit is behind where ties are not handled | lion-cub-ties-minus ÷ lion-cub | 1.015 (0.990 to 1.040) | **no** |",
  ]);
  expect(expectationsTable(linesOf({ adamw: [2] }))).toBe("");
  for (const { methods: pair } of expectations)
    for (const method of pair) expect(Object.keys(methods)).toContain(method);
});

const ends = (method: string, ...seconds: readonly number[]) => [
  line(method, method, "steps_of_9_until_20", 20),
  line(method, method, "steps_of_9_until_40", 30),
  line(method, method, "steps_of_1_until_40", 10),
  line("100mbit", `${method}, 100mbit`, "ms_of_9", 1000 * seconds[0]!),
  line("100mbit", `${method}, 100mbit`, "ms_of_1", 1000 * seconds[1]!),
];

it("add up the seconds of every kind of step, until the loss of AdamW", () => {
  const lines = linesOf({ adamw: [2.3, 2.2], "pytorch-ddp": [2.3, 2.2], lion: [1.2, 1.2], sgd: [2.5, 2.1] }, [
    ...ends("pytorch-ddp", 2, 2),
    ...ends("lion", 0.5, 0.25),
    ...ends("sgd", 0.5, 0.25),
    line("sgd", "sgd, twice the steps", "loss_at_60", 2.31),
    line("sgd", "sgd, twice the steps", "steps_of_9_until_60", 60),
  ]);
  const [adamw, ddp, lion, sgd] = curvesOf(lines);
  expect(adamw!.toLoss("100mbit")).toBeUndefined(); // not timed
  expect(ddp!.secondsAfter("100mbit", 40)).toBe(80);
  expect(ddp!.toLoss("100mbit")).toEqual({ seconds: 80, ratio: 1, oneSeed: false });
  expect(lion!.secondsAfter("100mbit", 40)).toBe(17.5);
  expect(lion!.toLoss("100mbit")).toEqual({ seconds: 10, ratio: 80 / 10, oneSeed: false }); // after 20 steps
  expect(lion!.bytesAfter(40)).toBe(9 * 30 + 10);
  expect(sgd!.toLoss("100mbit")).toEqual({ seconds: 30, ratio: 80 / 30, oneSeed: true }); // in the longer run
  expect(sgd!.toLoss("10mbit")).toBeUndefined();
});

it("compare with the fastest of PyTorch's sides, and take the shorter of two runs", () => {
  const lines = linesOf(
    { adamw: [2.3], "pytorch-ddp": [2.3], "pytorch-ddp-muon": [1.2], "pytorch-ddp-powersgd-2": [2.9], lion: [1.2] },
    [
      ...ends("pytorch-ddp", 2, 2),
      ...ends("pytorch-ddp-muon", 3, 3), // after 20 steps
      ...ends("pytorch-ddp-powersgd-2", 0.1, 0.1), // never
      ...ends("lion", 0.5, 0.25),
      line("lion", "lion, half the steps", "loss_at_20", 2.2),
      line("lion", "lion, half the steps", "steps_of_1_until_20", 20),
    ],
  );
  expect(fastestPeer(byCase(lines), "100mbit")).toEqual({ method: "pytorch-ddp-muon", seconds: 60 });
  const lion = curvesOf(lines).find(({ method }) => method === "lion")!;
  expect(lion.toLoss("100mbit")).toEqual({ seconds: 5, ratio: 60 / 5, oneSeed: true });
  expect(convergenceReport(lines, machine)).toContain("to the loss, ÷ pytorch-ddp-muon");
});

it("name the settings that the search chose, and those at an edge of it", () => {
  const lines = linesOf({ adamw: [2], lion: [2.1] }, [
    line("adamw", "adamw, seed 1", "warmup", 0.3),
    line("adamw", "adamw, seed 1", "beta2", 0.95),
    line("adamw", "adamw, search", "beta2_at_edge", 1),
  ]);
  const report = convergenceReport(lines, machine);
  expect(report).toContain("| adamw | 0.004 | 30 % | 0.95 ‡ | 2.000 |");
  expect(report).toContain("| lion | 0.004 | – | – | 2.100 |");
});

const timed = [
  line("lion", "lion", "steps_of_1_until_20", 20),
  line("lion", "lion", "steps_of_1_until_40", 40),
  line("100mbit", "lion, 100mbit", "ms_of_1", 100),
];

it("have a row for each method in the table, with what it changes and how soon it is there", () => {
  const lines = linesOf({ adamw: [2, 2.2, 2.1], lion: [2.1, 2.2, 2.2] }, timed);
  const report = convergenceReport(lines, machine);
  expect(report).toContain(
    "| lion | 0.004 | – | – | 2.167 (2.100 to 2.200) | 1.033 (1.000 to 1.050) | 1.00 MB | 4 | – | – | – |",
  );
  expect(report).toMatch(/- lion: `optimizer.name=lion`/);
  const picture = convergencePicture(lines);
  for (const text of [
    "3 seeds",
    "adamw: 2.100 (2.000 to 2.200)",
    "seconds on links of 100 Mbit/s",
    "bytes that one worker has sent",
  ])
    expect(picture).toContain(text);
  expect(picture).not.toMatch(/NaN|undefined/);
});

it("are pictures of the user's own data too, whose titles say what was measured", () => {
  const lines = linesOf({ adamw: [2], "lion-cub-8-bits": [2.1] });
  const picture = convergencePicture(lines, ['data.path="my/<texts> & more"', "steps=40", "model.width=32"]);
  for (const text of [
    ">Validation loss of a small GPT on my/&lt;texts> &amp; more, 4 workers, 1 seed<",
    ">with steps=40, model.width=32<",
    "lion-cub-8-bits: 2.100",
  ])
    expect(picture).toContain(text);
  expect(convergencePicture(lines)).not.toContain("lion-cub-8-bits"); // a variant, which the record's table has
  const long = recipePicture(lines, [`data.path=${"a/".repeat(100)}end.txt`]);
  expect(long).toMatch(/gpt-small on …(a\/){9,}end.txt, 4 workers/);
});

it("show a run that broke off", () => {
  const lines = linesOf({ adamw: [2], lion: [Number.NaN] });
  expect(convergenceReport(lines, machine)).toContain("| lion | 0.004 | – | – | – | – | 1.00 MB |");
  expect(convergencePicture(lines)).not.toMatch(/NaN|undefined/);
});

it("compare gpt-small with its variants", () => {
  const losses = { adamw: [2, 2.2, 2.1], "one-bit-lamb": [2.1, 2.2, 2.2] };
  const longer = { "adamw-1500-steps": [1, 1.2], "muon-1500-steps": [0.9, 1.08] };
  const lines = linesOf({ ...losses, ...longer }, [line("muon", "muon, seed 1", "validation_loss", 1.9)]).map(
    (one) => ({
      ...one,
      value: one.metric === "sent_per_step" && one.case.startsWith("adamw") ? 32e6 : one.value,
    }),
  );
  const report = recipeReport([...lines, line("muon", "muon", "sent_per_step", 1e6)], machine);
  const lamb = "2.167 (2.100 to 2.200) | 1.033 (1.000 to 1.050) | 1.00 MB | 1/32 |";
  expect(report).toContain(`| one-bit-lamb | 0.004 | – | ${lamb}`);
  expect(report).toMatch(/\| muon \| – \| – \| 1\.900 \| 0\.950 /); // recorded before there was a search
  expect(report).toContain(
    "| muon-1500-steps | 0.004 | – | 0.990 (0.900 to 1.080) | 0.900 (0.900 to 0.900) | 1.00 MB | 1/32 |",
  );
  expect(recipeReport(linesOf(losses), machine)).not.toContain("1500");
  expect(report).toContain("- adamw-terngrad: gpt-small-terngrad.yaml as it is; its search begins at η 0.004");
  expect(recipePicture(linesOf(losses))).toContain("adamw: 2.100 (2.000 to 2.200)");
  expect(recipePicture(linesOf({ ...losses, ...longer }))).not.toContain("1500");
});
