import { expect, it } from "vitest";
import { provenance, type RecordedLine } from "../recording.ts";
import { gpuReport } from "./report.ts";

const line = (setting: string, name: string, metric: string, value: number, unit: string): RecordedLine => ({
  bench: "gpu",
  setting,
  recorded: "2026-11-26T05:00Z",
  machine: "16 cores, NVIDIA H100",
  case: name,
  metric,
  value,
  unit,
});
const lines = [
  line("codecs", "copy, before, 64 Mi floats", "gb_per_second", 2900, "GB/s"),
  line("codecs", "bf16 encode, 64 Mi floats", "over_copy", 0.954, "ratio"),
  line("codecs", "bf16 encode, 64 Mi floats", "milliseconds", 0.15, "ms"),
  line("codecs", "bf16 encode, 64 Mi floats", "over_torch", 1.02, "ratio"),
  line("codecs", "copy, after, 64 Mi floats", "gb_per_second", 2905, "GB/s"),
  line("codecs", "bf16 encode, 256 Mi floats", "over_copy", 0.97, "ratio"),
  line("training", "adamw, cpu", "loss_at_100", 2.5, "nats/byte"),
  line("training", "adamw, cpu", "step_ms", 81.25, "ms"),
  line("two-ranks", "lion-cub", "step_ms", 102.5, "ms"),
  line("two-ranks", "lion-cub", "sent_per_step", 15_500_000, "B"),
];

it("has a row for each kernel with its sizes side by side, and a row for each run", () => {
  const report = gpuReport(lines, provenance(lines));
  expect(report).toContain("16 cores, NVIDIA H100.");
  expect(report).toContain("A copy of 64 Mi floats: 2900 to 2905 GB/s.");
  expect(report).toContain("| bf16 encode | 0.95 | 0.15 ms | 1.02 | 0.97 | – | – |");
  expect(report).toContain("| adamw, cpu | 2.5000 | 81.25 ms |");
  expect(report).toContain("| lion-cub | 102.5 ms | 15.5 MB |");
});

it("says what has not been recorded", () => {
  expect(gpuReport([], { machine: "none", when: "never" }).match(/Not recorded yet/g)).toHaveLength(5);
});
