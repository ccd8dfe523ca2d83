import { expect, it } from "vitest";
import { barsIn } from "../testing/bars-in.ts";
import { trainPicture, trainReport } from "./report.ts";

const of = (name: string, values: Record<string, number>) =>
  Object.entries(values).map(([metric, value]) => ({ case: `${name} ×2 100mbit`, metric, value, unit: "" }));
const lines = [
  ...of("lion fp32 with-overlap", {
    step_ms: 1500,
    steps: 12,
    exposed_ms: 1290,
    exposed_fraction: 0.86,
    exposed_fraction_least: 0.8,
  }),
  ...of("lion-cub 1-bit without-overlap", { step_ms: 200, exposed_fraction: 0.1, speedup_over_lion_f32: 8 }),
  ...of("lion-cub 1-bit with-overlap", {
    step_ms: 160,
    exposed_fraction: 0,
    speedup_over_lion_f32: 10,
    speedup_over_powersgd: 1.25,
  }),
  ...of("pytorch ddp fp32", { step_ms: 1600, exposed_fraction: 0.75, exposed_fraction_least: 0.7 }),
];
const swatches = (svg: string) => [...svg.matchAll(/<rect class="([\w-]+)" y="-9"/g)].map(([, name]) => name);

it("compares one bit with 32 bits, without and with overlap, and with PowerSGD", () => {
  const text = trainReport(lines, { machine: "2 cores", when: "today" }).replaceAll("\n", " ");
  expect(text).toContain("Without overlap Lion Cub is **8.00 ×** as fast as 32-bit Lion.");
  // 1500 / 160
  expect(text).toContain("**10.00 ×** as fast as that, 9.38 × as fast as 32-bit Lion with overlap, and **1.25 ×**");
  expect(text).toContain("| pytorch ddp fp32 | 1600 | ––– | 75 % | 70 % |");
});

it("compares other methods with PyTorch's PowerSGD in a section of their own", () => {
  const methods = [
    ...of("lion powersgd rank 2 with-overlap", { step_ms: 180, speedup_over_powersgd: 1.2 }),
    ...of("dion rank d/8 with-overlap", { step_ms: 400, speedup_over_powersgd: 1.5 }),
    ...of("pytorch ddp powersgd rank 2", { step_ms: 216 }),
    ...of("pytorch ddp powersgd rank 32", { step_ms: 600 }),
  ];
  const own = methods.map((line) => ({ ...line, case: `${line.case}, methods` }));
  const text = trainReport([...lines, ...own], { machine: "2 cores", when: "today" });
  expect(text).toContain("### 2 ranks, 100 Mbit/s, methods");
  expect(text).toContain(
    ": lion powersgd rank 2 with-overlap **1.20 ×** (rank 2), dion rank d/8 with-overlap **1.50 ×** (rank 32).",
  );
  expect(trainPicture([...lines, ...own])).toContain("Lion, our PowerSGD rank 2, overlapped");
});

it("draws PyTorch's waiting time on the rank that waits most", () => {
  expect(swatches(trainPicture(lines)!)).toEqual(["own", "own-waiting", "peer", "peer-waiting"]);
  expect(barsIn(trainPicture(lines)!)).toContainEqual(["peer-waiting", expect.anything(), 390]); // 520 · 0.75
});

it("hatches bars whose waiting time was not recorded, which is not the same as none", () => {
  const silent = lines.filter(
    ({ case: name, metric }) => !(name.startsWith("pytorch") && metric.startsWith("exposed")),
  );
  const picture = trainPicture(silent)!;
  expect(swatches(picture)).toEqual(["own", "own-waiting", "peer", "hatched"]);
  expect(barsIn(picture)).toContainEqual(["hatched", 250, 520]);
  expect(barsIn(picture).map(([name]) => name)).not.toContain("peer");
});

it("has a table of projections, apart from what was measured", () => {
  const projected = [
    { case: "GPT, Lion Cub, projection", metric: "row_ms", value: 2000, unit: "ms" },
    { case: "GPT, Lion Cub, projection", metric: "update_ms", value: 80, unit: "ms" },
    ...["100mbit", "1gbit", "10gbit"].flatMap((rate) =>
      Object.entries({ step_ms: 1000, dense_step_ms: 9000, speedup_over_dense: 9, messages_over_dense: 31 }).map(
        ([metric, value]) => ({ case: `GPT, Lion Cub ×8 ${rate}, projection`, metric, value, unit: "" }),
      ),
    ),
  ];
  const text = trainReport([...lines, ...projected], { machine: "2 cores", when: "today" });
  const cell = "9 s → 1 s, **9.0 ×**, 31 ×";
  expect(text).toContain(`| GPT, Lion Cub | 8 | 2 s | 0.08 s | ${cell} | ${cell} | ${cell} |`);
  expect(text).toContain("### 2 ranks, 100 Mbit/s: ");
  expect(trainPicture([...lines, ...projected])).toBe(trainPicture(lines));
});

it("compares our hook of PyTorch's DDP with its fp16 hook in a section of its own", () => {
  const inHooks = (name: string, values: Record<string, number>) =>
    of(name, values).map((line) => ({ ...line, case: `${line.case}, torch_hook` }));
  const text = trainReport(
    [
      ...inHooks("terse_torch 1-bit 2 MB buckets", { step_ms: 160, step_over_fp16_hook: 5.06 }),
      ...inHooks("pytorch ddp fp16 2 MB buckets", { step_ms: 810 }),
    ],
    { machine: "2 cores", when: "today" },
  );
  expect(text).toContain("### 2 ranks, 100 Mbit/s, torch_hook");
  expect(text).toContain("is **5.06 ×** as fast as with PyTorch's fp16 hook");
});
