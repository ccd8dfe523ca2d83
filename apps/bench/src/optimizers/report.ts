/** Writes docs/results/optimizers.md: the local work of a step, beside PyTorch's and beside the speed of memory. */
import type { Provenance, RecordedLine } from "../recording.ts";
import { tableOfCases } from "../table.ts";

const titles: Readonly<Record<string, string>> = {
  step_ms: "a step",
  torch_ms: "PyTorch's",
  over_torch: "÷ PyTorch's",
  over_stream: "share of streaming",
};

export function optimizersReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const short = lines.map((line) => ({ ...line, case: line.case.replace(/, 64 Mi parameters$/, "") }));
  const metrics = Object.keys(titles);
  return `# Optimizers: the local work of a step

Written by \`./terse bench optimizers --record\`. ${machine}. 64 Mi parameters in 16 square matrices, one thread, medians of rounds in which the
sides take turns.

*÷ PyTorch's* is our time ÷ PyTorch's for the same update; less than 1 is faster. SGD, AdamW (fused) and Muon are torch.optim's, and Muon iterates in
bf16 there; Lion and LAMB are multi-tensor operations with scratch tensors that are kept; Dion is Algorithm 1 in eager operators, PowerSGD what
PyTorch's hook computes between its messages. *Share of streaming* is the bytes of the arrays that a step must go through, each counted once for
every time that the method has to, ÷ the time, ÷ the speed of the better of two plain in-place loops; 1 is as fast as memory. Methods that
compress run on two ranks in one thread, and count half, with the copies that carry their messages.

${tableOfCases(short, (metric) => titles[metric]!, { metrics })}

All lines: [optimizers.jsonl](optimizers.jsonl). Recorded: ${when}.
`;
}
