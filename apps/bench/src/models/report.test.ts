import { readRecipe } from "@terse/train/recipe";
import { expect, it } from "vitest";
import type { RecordedLine } from "../recording.ts";
import { modelsReport } from "./report.ts";
import { dataOf, methods, tasks } from "./tasks.ts";

const line = (setting: string, name: string, metric: string, value: number, unit = ""): RecordedLine => ({
  bench: "models",
  setting,
  recorded: "2026-11-23T08:00Z",
  machine: "a machine",
  case: name,
  metric,
  value,
  unit,
});

const run = (method: string, accuracies: readonly number[], sent: number) => [
  line(`resnet18-${method}`, `resnet18-${method}, search`, "loss_at_lr_0.001", 1.5),
  ...accuracies.flatMap((accuracy, i) => [
    line(`resnet18-${method}`, `resnet18-${method}, seed ${i + 1}`, "validation_loss", 2 - accuracy),
    ...(Number.isNaN(accuracy) // a run that broke off
      ? []
      : [line(`resnet18-${method}`, `resnet18-${method}, seed ${i + 1}`, "validation_accuracy", accuracy)]),
    line(`resnet18-${method}`, `resnet18-${method}, seed ${i + 1}`, "lr", 0.001),
  ]),
  line(`resnet18-${method}`, `resnet18-${method}`, "sent_per_step", sent),
];

it("has the mean over the seeds, the least and the most, and the share of the bytes", () => {
  const lines = [
    ...run("lion", [0.5, 0.4], 6_400_000),
    ...run("lion-cub", [0.45], 200_000),
    ...run("lion-cub-8-bits-l1", [Number.NaN, 0.4], 1_600_000),
  ];
  const report = modelsReport(lines, { machine: "a machine", when: "today" });
  expect(report).toContain("| lion | 0.001 | 1.550 (1.500 to 1.600) | 45.0 % (40.0 % to 50.0 %) | 6.40 MB | 1.0 |");
  expect(report).toContain("| lion-cub | 0.001 | 1.550 | 45.0 % | 200.0 kB | 0.031 |");
  expect(report).toContain("| lion-cub-8-bits-l1 | 0.001 | – | 40.0 % | 1.60 MB | 0.25 |");
  expect(report).not.toMatch(/undefined|NaN|\| one-bit-lamb/);
});

it("says where the best learning rate is at an end of the search", () => {
  const tried = (rates: readonly number[]) =>
    rates.map((rate) => line("resnet18-lion", "resnet18-lion, search", `loss_at_lr_${rate}`, 1.5));
  const etaOf = (rates: readonly number[]) => {
    const report = modelsReport([...run("lion", [0.5], 1), ...tried(rates)], { machine: "a machine", when: "today" });
    return report.match(/^\| lion \| ([^|]*) \|/m)?.[1];
  };
  expect(etaOf([0.0005, 0.001, 0.002])).toBe("0.001");
  expect(etaOf([0.0005, 0.001])).toBe("0.001, the largest tried");
  expect(etaOf([0.002, 0.001])).toBe("0.001, the least tried");
});

it("has a table for what was measured beside PyTorch", () => {
  const report = modelsReport([line("gpt", "gpt small, 1 thread", "over_pytorch", 1.25, "ratio")], {
    machine: "a machine",
    when: "today",
  });
  expect(report).toContain("|  | over pytorch |\n| --- | --- |\n| gpt small, 1 thread | 1.25 × |");
});

it("has a table for each kind of case, also where one setting has both", () => {
  const lines = [
    line("gpt", "gpt", "over_pytorch", 1.25, "ratio"),
    line("llama", "llama", "over_pytorch", 1.5, "ratio"),
    line("llama", "llama with LoRA", "lora_over_peft", 1.75, "ratio"),
  ];
  const report = modelsReport(lines, { machine: "a machine", when: "today" });
  expect(report).toContain("|  | over pytorch |\n| --- | --- |\n| gpt | 1.25 × |\n| llama | 1.5 × |\n\n");
  expect(report).toContain("|  | lora over peft |\n| --- | --- |\n| llama with LoRA | 1.75 × |\n\n");
});

it.each(Object.entries(tasks))("%s can be trained by every method", (_, task) => {
  for (const changes of Object.values(methods))
    expect(readRecipe(task.recipe, ["data.path=data", ...changes]).steps).toBeGreaterThan(0);
});

it("says what to set where there is no data", () => {
  const before = process.env["TERSE_DATA"];
  process.env["TERSE_DATA"] = "nowhere";
  try {
    expect(() => dataOf(tasks.bert)).toThrow(/nowhere.tinyshakespeare\.txt does not exist: set TERSE_DATA/);
  } finally {
    if (before === undefined) delete process.env["TERSE_DATA"];
    else process.env["TERSE_DATA"] = before;
  }
});
