/** The rows of Li et al. 2021, "1-bit LAMB". */
import { bytesOfRound, dense, standardSchemes } from "@terse/exchange";
import { type Items, isFalling, percentText, type Readings, ratioText, reading } from "./item.ts";
import { bitsPerSecond, type ProfiledBert, predictedAllReduce, table5 } from "./lamb-table-5.ts";
import { probed } from "./probed.ts";
import { recordedValue } from "./recorded.ts";
import { losses, sweep } from "./trained.ts";

/** Steps with dense gradients as a share of all, for sequences of 128 and of 512 tokens. §5, §6 */
const warmups = { 128: 1000 / 5993, 512: 107 / 555 } as const;

/** 1 / (w + (1 − w) / s): the whole run's gain, where all but a share w is s times as fast. */
const endToEnd = (warmup: number, gain: number) => 1 / (warmup + (1 - warmup) / gain);

const shareRow = (network: ProfiledBert["network"]) => ({
  what: `Table 5, ${network}`,
  claim:
    "The all-reduce of BERT-Large's gradients takes up to 91 % of a step on Ethernet, and up to 52 % on InfiniBand.",
  rule: `predicted from ${bitsPerSecond[network] / 1e9} Gbit/s and the paper's computing times within 10 points, for all rows of more than one node`,
  *measure() {
    for (const step of table5) {
      if (step.network !== network || step.nodes === 1) continue;
      const share = (allReduce: number) => allReduce / (allReduce + step.computing);
      const name = `${step.nodes} nodes, batch ${step.batch} Ki`;
      yield reading(`share, ${name}`, share(step.allReduce), "share");
      yield reading(`predicted share, ${name}`, share(predictedAllReduce(step)), "share");
    }
  },
  measured(readings: Readings) {
    const errors = readings.all("predicted share, ").map(([name, share]) => share - readings.of(`share, ${name}`));
    const largest = errors.reduce((a, b) => (Math.abs(b) > Math.abs(a) ? b : a));
    const near = errors.filter((error) => Math.abs(error) <= 0.1).length;
    return `${near} of ${errors.length} rows within 10 points; largest error ${(100 * largest).toFixed(0)} points`;
  },
  holds: (readings: Readings) =>
    readings.all("predicted share, ").every(([name, share]) => Math.abs(share - readings.of(`share, ${name}`)) <= 0.1),
});

const gainOf = (step: ProfiledBert) => {
  const compressed = step.computing + predictedAllReduce(step) / 16;
  return (step.computing + predictedAllReduce(step)) / compressed;
};

const longRun = 2000;
const settled = {
  method: "lamb",
  steps: 1000,
  at: [20, 50, 100, 150, 200, 250, 333, 400, 500, 600, 667, 750, 850, 1000],
  workers: 2,
} as const;

export const oneBitLamb: Items = {
  "one-bit-lamb-table-1": {
    what: "Table 1",
    claim: "At a large batch 1-bit Adam is behind LAMB.",
    rule: "with 8 times the batch the loss of 1-bit Adam ÷ LAMB is above 1 with every seed, 200 steps",
    measure: (row) =>
      losses({
        row,
        seeds: [1, 2],
        steps: 200,
        trials: [
          { name: "one-bit-adam", method: "one-bit-adam", changes: ["accumulate=8", "optimizer.warmup=34"] },
          { name: "lamb", method: "lamb", changes: ["accumulate=8"] },
        ],
      }),
    measured: (readings) => ratioText(readings.ratio("one-bit-adam", "lamb")),
    holds: (readings) => readings.ratio("one-bit-adam", "lamb").least > 1,
  },

  "one-bit-lamb-figure-1": {
    what: "Figures 1 and 4",
    claim: "LAMB's scaling coefficients rise to plateaus, at different times and heights.",
    rule: "1,000 steps, in 80 % of the layers: less than 10 % of change over the last third, and higher than after 100 steps",
    async *measure(row) {
      for await (const { step, of } of probed({ ...settled, row }))
        for (const [name, ratio] of of.byLayer("layers/ratios")) yield reading(`ratio of ${name} after ${step}`, ratio);
    },
    measured(readings) {
      const { settledShare, risenShare } = plateaus(readings);
      return `settled ${percentText(settledShare)} of the layers, risen ${percentText(risenShare)}`;
    },
    holds(readings) {
      const { settledShare, risenShare } = plateaus(readings);
      return settledShare >= 0.8 && risenShare >= 0.8;
    },
  },

  "one-bit-lamb-figure-5": {
    what: "Figures 1 and 5",
    claim: "The norms of the variances keep falling, by up to two orders of magnitude.",
    rule: "in most layers ‖v‖ falls by more than 3 times from the end of the warm-up to the end of 1,000 steps",
    async *measure(row) {
      for await (const { step, of } of probed({ ...settled, row }))
        for (const [name, norm] of of.byLayer("layers/variance_norms"))
          yield reading(`norm of ${name} after ${step}`, norm);
    },
    measured(readings) {
      const falls = variancesFall(readings);
      const [least, most] = [Math.min(...falls).toPrecision(2), Math.max(...falls).toPrecision(2)];
      const far = percentText(falls.filter((fall) => fall > 3).length / falls.length);
      return `by ${least} to ${most} times; more than 3 times in ${far} of the layers`;
    },
    holds(readings) {
      const falls = variancesFall(readings);
      return falls.filter((fall) => fall > 3).length > falls.length / 2;
    },
  },

  "one-bit-lamb-table-2": {
    what: "Table 2",
    claim: "1-bit LAMB ends as low as LAMB, and LAMB with one bit and nothing else does not.",
    rule: "2,000 steps, 17 % of them warm-up, seed 1: 1-bit LAMB ÷ LAMB at most 1.02, and basic ÷ 1-bit LAMB above 1",
    measure: (row) =>
      losses({
        row,
        seeds: [1],
        steps: longRun,
        trials: [
          { name: "lamb", method: "lamb" },
          ...["one-bit-lamb", "lamb-basic-one-bit"].map((method) => ({
            name: method,
            method,
            changes: [`optimizer.warmup=${Math.round(0.17 * longRun)}`],
          })),
        ],
      }),
    measured(readings) {
      const own = ratioText(readings.ratio("one-bit-lamb", "lamb"));
      return `1-bit LAMB ÷ LAMB ${own}; basic ÷ 1-bit LAMB ${ratioText(readings.ratio("lamb-basic-one-bit", "one-bit-lamb"))}`;
    },
    holds: (readings) =>
      readings.ratio("one-bit-lamb", "lamb").mean <= 1.02 &&
      readings.ratio("lamb-basic-one-bit", "one-bit-lamb").least > 1,
  },

  "one-bit-lamb-figure-2": {
    what: "Figure 2",
    claim: "The curves of LAMB and 1-bit LAMB by samples coincide.",
    rule: "from step 100 on the losses of 1-bit LAMB ÷ LAMB are within 2 % of 1, in the mean over the seeds (bench convergence)",
    *measure() {
      for (let step = 100; step <= 400; step += 20)
        for (const seed of [1, 2, 3]) {
          const loss = (method: string) =>
            recordedValue("convergence", `${method}, seed ${seed}`, `loss_at_${step}`, method);
          yield reading(`ratio after ${step}, seed ${seed}`, loss("one-bit-lamb") / loss("lamb"), "ratio");
        }
    },
    measured(readings) {
      const means = curveRatios(readings);
      return `${Math.min(...means).toFixed(3)} to ${Math.max(...means).toFixed(3)}`;
    },
    holds: (readings) => curveRatios(readings).every((ratio) => Math.abs(ratio - 1) <= 0.02),
  },

  "one-bit-lamb-table-3": {
    what: "Table 3",
    claim: "On GLUE a BERT-Large pre-trained with 1-bit LAMB is as good as one with LAMB.",
    because:
      "it needs BERT-Large, pre-trained for days on hundreds of GPUs; Table 2 and Figure 2 stand for it at a small size",
  },

  "one-bit-lamb-table-4": {
    what: "Table 4",
    claim: "Whole pre-trainings are 2.2 and 1.5 times as fast.",
    rule: "bench train, 2 ranks at 100 Mbit/s: with a warm-up of 16.7 % a run is at least 2.2 times as fast",
    *measure() {
      const step = (name: string, setting: string) => recordedValue("train", name, "step_ms", setting);
      yield reading("dense step", step("lion fp32 with-overlap ×2 100mbit", "2x100mbit"), "ms");
      yield reading(
        "compressed step",
        step("one-bit-lamb with-overlap ×2 100mbit, methods", "2x100mbit-methods"),
        "ms",
      );
    },
    measured(readings) {
      const gain = readings.of("dense step") / readings.of("compressed step");
      return `compressed ${gain.toFixed(1)} ×, end to end ${endToEnd(warmups[128], gain).toFixed(1)} ×`;
    },
    holds: (readings) => endToEnd(warmups[128], readings.of("dense step") / readings.of("compressed step")) >= 2.2,
  },

  "one-bit-lamb-figure-3": {
    what: "Figure 3",
    claim:
      "Compression makes a step up to 4.5 times as fast on Ethernet, more with more GPUs, less with larger batches.",
    rule: "from the paper's computing times: within 25 % of 4.5 at 64 nodes, growing with the nodes, shrinking with the batch",
    *measure() {
      for (const step of table5)
        if (step.network === "Ethernet" && step.nodes > 1)
          yield reading(`gain, ${step.nodes} nodes, batch ${step.batch} Ki`, gainOf(step), "ratio");
    },
    measured(readings) {
      const gain = (nodes: number, batch: number) =>
        `${batch} Ki ${readings.of(`gain, ${nodes} nodes, batch ${batch} Ki`).toFixed(1)} ×`;
      return `64 nodes: ${[8, 16, 32, 64].map((batch) => gain(64, batch)).join(", ")}; 2 nodes: ${gain(2, 8)}`;
    },
    holds(readings) {
      const byNodes = [2, 4, 8, 16, 32, 64].map((nodes) => readings.of(`gain, ${nodes} nodes, batch 8 Ki`));
      const byBatch = [8, 16, 32, 64].map((batch) => readings.of(`gain, 64 nodes, batch ${batch} Ki`));
      return isFalling(byNodes.toReversed()) && isFalling(byBatch) && Math.abs(byBatch[0]! / 4.5 - 1) <= 0.25;
    },
  },

  "one-bit-lamb-table-5-ethernet": shareRow("Ethernet"),
  "one-bit-lamb-table-5-infiniband": shareRow("InfiniBand"),

  "one-bit-lamb-figure-6": {
    what: "Figure 6",
    claim: "Scaling ratios are larger in layers whose variance still falls.",
    rule: "400 steps, 80 of warm-up: rank correlation of a layer's last ratio and its variance's fall since then above 0.5",
    async *measure(row) {
      for await (const { step, of } of probed({ row, method: "one-bit-lamb", steps: 400, at: [80, 400], workers: 2 })) {
        for (const [name, norm] of of.byLayer("layers/variance_norms"))
          yield reading(`norm of ${name} after ${step}`, norm);
        if (step === 400)
          for (const [name, change] of of.byLayer("layers/changes")) yield reading(`change of ${name}`, change);
      }
    },
    measured: (readings) => `rank correlation ${correlationWithFall(readings).toFixed(2)}`,
    holds: (readings) => correlationWithFall(readings) > 0.5,
  },

  "one-bit-lamb-figure-7": {
    what: "Figure 7",
    claim: "The authors' exchange over NCCL is at least as fast as over MPI.",
    rule: "not theirs: our 1 bit over TCP takes less than PyTorch's compressed exchange over Gloo, 16 Mi parameters (bench exchange)",
    *measure() {
      for (const ranks of [2, 4])
        for (const side of ["1-bit", "pytorch compressed"])
          yield reading(
            `time of ${side}, ${ranks} ranks`,
            recordedValue("exchange", `${side} 16 Mi ×${ranks} loopback TCP`, "time", `${ranks}xloopback`),
            "ms",
          );
    },
    measured: (readings) =>
      [2, 4]
        .map((ranks) => {
          const time = (side: string) => `${readings.of(`time of ${side}, ${ranks} ranks`).toFixed(0)} ms`;
          return `${ranks} ranks: ${time("1-bit")} against ${time("pytorch compressed")}`;
        })
        .join("; "),
    holds: (readings) =>
      [2, 4].every(
        (ranks) =>
          readings.of(`time of 1-bit, ${ranks} ranks`) < readings.of(`time of pytorch compressed, ${ranks} ranks`),
      ),
  },

  "one-bit-lamb-table-6": sweep({
    what: "Table 6",
    claim: "The result does not depend on the number of GPUs.",
    rule: "losses of 1-bit LAMB ÷ LAMB with 2, 4, 8 and 16 workers and 32 rows in all are within 3 %, seed 1",
    methods: ["one-bit-lamb", "lamb"],
    values: [2, 4, 8, 16],
    at: (workers) => ({ workers, changes: [`data.batchSize=${32 / workers}`] }),
    holds: (ratios) => Math.max(...ratios) / Math.min(...ratios) <= 1.03,
  }),

  "one-bit-lamb-table-7": sweep({
    what: "Table 7",
    claim: "1-bit LAMB is as good as LAMB at every batch size.",
    rule: "loss of 1-bit LAMB ÷ LAMB at most 1.02 with 1, 4 and 16 times the batch, 200 steps, seed 1",
    methods: ["one-bit-lamb", "lamb"],
    values: [1, 4, 16],
    steps: 200,
    at: (rows, method) => ({
      changes: [`accumulate=${rows}`, ...(method === "one-bit-lamb" ? ["optimizer.warmup=34"] : [])],
    }),
    holds: (ratios) => ratios.every((ratio) => ratio <= 1.02),
  }),

  "one-bit-lamb-table-8": {
    what: "Table 8 and Figure 8",
    claim: "ResNet-50 on CIFAR-100: 1-bit LAMB is as accurate as LAMB.",
    because: "CIFAR-100 is not here; Figure 2 and Table 2 compare the two on text",
  },

  "one-bit-lamb-volume": {
    what: "formula of volume",
    claim: "With a warm-up of w the volume is 1 / (w + (1 − w)/16) times smaller than in fp16: 4.6 and 4.1 times.",
    rule: "by the closed forms of the messages for BERT-Large on 64 ranks: 4.6 and 4.1, to the printed digit",
    *measure() {
      const n = 340e6;
      const [half, bit] = [
        bytesOfRound([{ kind: "mean", n }], 64, 0, { ...standardSchemes, means: dense("f16") }),
        bytesOfRound([{ kind: "meanErrorCompensated", n }], 64, 0, standardSchemes),
      ];
      for (const [length, warmup] of Object.entries(warmups))
        yield reading(`volume, ${length} tokens`, half / (warmup * half + (1 - warmup) * bit), "ratio");
    },
    measured: (readings) =>
      readings
        .all("volume")
        .map(([name, ratio]) => `${name.slice(2)}: ${ratio.toFixed(2)} ×`)
        .join(", "),
    holds: (readings) =>
      readings.of("volume, 128 tokens").toFixed(1) === "4.6" && readings.of("volume, 512 tokens").toFixed(1) === "4.1",
  },

  "one-bit-lamb-end-to-end": {
    what: "formula of the whole run",
    claim: "Gains of 4.5 and 3.0 in compression are 2.8 and 2.2 end to end.",
    rule: "1 / (w + (1 − w)/s) with the paper's warm-ups, to the printed digit",
    *measure() {
      yield reading("128 tokens", endToEnd(warmups[128], 4.5), "ratio");
      yield reading("512 tokens", endToEnd(warmups[512], 3), "ratio");
    },
    measured: (readings) => `${readings.of("128 tokens").toFixed(2)} and ${readings.of("512 tokens").toFixed(2)}`,
    holds: (readings) =>
      readings.of("128 tokens").toFixed(1) === "2.8" && readings.of("512 tokens").toFixed(1) === "2.2",
  },

  "one-bit-lamb-scaling": {
    what: "Appendix A.5.2",
    claim: "Momenta that are scaled before the compression train better than momenta compressed as they are.",
    rule: "loss of 1-bit LAMB with scaled momenta ÷ with one scale for all of the momentum below 1 with every seed",
    measure: (row) =>
      losses({
        row,
        seeds: [1, 2],
        trials: ["momentum-scaled", "fused"].map((scale) => ({
          name: scale,
          method: "one-bit-lamb",
          changes: [`optimizer.scale=${scale}`],
        })),
      }),
    measured: (readings) => ratioText(readings.ratio("momentum-scaled", "fused")),
    holds: (readings) => readings.ratio("momentum-scaled", "fused").most < 1,
  },

  "one-bit-lamb-theorem-1": {
    what: "Theorem 1",
    claim: "It converges at a rate of O(1/√(n T)).",
    because: "a rate in the limit cannot be seen in a run",
  },
};

function curveRatios(readings: Readings): number[] {
  const bySteps = Map.groupBy(readings.all("ratio after "), ([name]) => name.split(",")[0]);
  return [...bySteps.values()].map((all) => all.reduce((sum, [, ratio]) => sum + ratio, 0) / all.length);
}

/** The layers whose reading of this name there is after the last step. */
const layersAtTheEnd = (readings: Readings, prefix: string): string[] =>
  readings.all(prefix).flatMap(([name]) => (name.endsWith(" after 1000") ? [name.slice(0, -11)] : []));

function plateaus(readings: Readings): { settledShare: number; risenShare: number } {
  const layers = layersAtTheEnd(readings, "ratio of ");
  const at = (name: string, step: number) => readings.of(`ratio of ${name} after ${step}`);
  const share = (is: (name: string) => boolean) => layers.filter(is).length / layers.length;
  return {
    settledShare: share((name) => Math.abs(at(name, 1000) / at(name, 667) - 1) < 0.1),
    risenShare: share((name) => at(name, 1000) > at(name, 100)),
  };
}

function variancesFall(readings: Readings): number[] {
  return layersAtTheEnd(readings, "norm of ").map(
    (name) => readings.of(`norm of ${name} after 333`) / readings.of(`norm of ${name} after 1000`),
  );
}

/** Spearman's rank correlation between the layers' last ratios and the falls of their variances. */
function correlationWithFall(readings: Readings): number {
  const layers = readings.all("change of ").map(([name]) => name);
  const falls = layers.map(
    (name) => readings.of(`norm of ${name} after 80`) / readings.of(`norm of ${name} after 400`),
  );
  const changes = layers.map((name) => readings.of(`change of ${name}`));
  const ranks = (values: readonly number[]) =>
    values.map((value) => {
      const below = values.filter((other) => other < value).length;
      const equal = values.filter((other) => other === value).length;
      return below + (equal - 1) / 2;
    });
  const [a, b] = [ranks(falls), ranks(changes)];
  const mean = (layers.length - 1) / 2;
  const product = (x: readonly number[], y: readonly number[]) =>
    x.reduce((sum, value, i) => sum + (value - mean) * (y[i]! - mean), 0);
  return product(a, b) / Math.sqrt(product(a, a) * product(b, b));
}
