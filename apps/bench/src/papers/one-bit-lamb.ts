/** The rows of Li et al. 2021, "1-bit LAMB". */
import { bytesOfRound, dense, standardSchemes } from "@terse/exchange";
import { type Items, percentText, type Readings, ratioText, reading } from "./item.ts";
import { bitsPerSecond, type ProfiledBert, predictedAllReduce, table5 } from "./lamb-table-5.ts";
import { probed } from "./probed.ts";
import { recordedValue } from "./recorded.ts";
import { losses } from "./trained.ts";

/** Steps with dense gradients as a share of all, for sequences of 128 and of 512 tokens. §5, §6 */
const warmups = { 128: 1000 / 5993, 512: 107 / 555 } as const;

/** 1 / (w + (1 − w) / s): the whole run's gain, where all but a share w is s times as fast. */
const endToEnd = (warmup: number, gain: number) => 1 / (warmup + (1 - warmup) / gain);

const shareRow = (network: ProfiledBert["network"]) => ({
  what: `Table 5, ${network}`,
  claim:
    "The all-reduce of BERT-Large's gradients takes up to 91 % of a step on Ethernet, and up to 52 % on InfiniBand.",
  rule: `the cost model predicts the share of all rows of more than one node within 10 points, from the stated ${bitsPerSecond[network] / 1e9} Gbit/s and the paper's computing times`,
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
    return `${errors.filter((error) => Math.abs(error) <= 0.1).length} of ${errors.length} rows within 10 points; largest error ${(100 * largest).toFixed(0)} points`;
  },
  holds: (readings: Readings) =>
    readings.all("predicted share, ").every(([name, share]) => Math.abs(share - readings.of(`share, ${name}`)) <= 0.1),
});

const gainOf = (step: ProfiledBert) => {
  const compressed = step.computing + predictedAllReduce(step) / 16;
  return (step.computing + predictedAllReduce(step)) / compressed;
};

const worlds = [2, 4, 8, 16];
const batches = [1, 4, 16];
const longRun = 2000;
const settled = {
  row: "one-bit-lamb-figure-1",
  method: "lamb",
  steps: 1000,
  at: [100, 333, 667, 1000],
  workers: 2,
} as const;

export const oneBitLamb: Items = {
  "one-bit-lamb-table-1": {
    what: "Table 1",
    claim: "At a large batch 1-bit Adam is behind LAMB.",
    rule: "with 8 times the batch the loss of 1-bit Adam ÷ LAMB is above 1 with every seed, 200 steps",
    measure: () =>
      losses({
        row: "one-bit-lamb-table-1",
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
    rule: "over the last third of 1,000 steps they change by less than 10 % in 80 % of the layers, and in 80 % of the layers they end higher than they were after 100 steps",
    async *measure() {
      for await (const { step, of } of probed(settled))
        for (const [i, name] of of.texts("layers/names").entries()) {
          const ratio = of.list("layers/ratios")[i];
          if (ratio !== null && ratio !== undefined) yield reading(`ratio of ${name} after ${step}`, ratio);
        }
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
    async *measure() {
      for await (const { step, of } of probed({ ...settled, row: "one-bit-lamb-figure-5" }))
        for (const [i, name] of of.texts("layers/names").entries()) {
          const norm = of.list("layers/variance_norms")[i];
          if (norm !== null && norm !== undefined) yield reading(`norm of ${name} after ${step}`, norm);
        }
    },
    measured(readings) {
      const falls = variancesFall(readings);
      return `by ${Math.min(...falls).toFixed(1)} to ${Math.max(...falls).toFixed(1)} times; more than 3 times in ${percentText(falls.filter((fall) => fall > 3).length / falls.length)} of the layers`;
    },
    holds(readings) {
      const falls = variancesFall(readings);
      return falls.filter((fall) => fall > 3).length > falls.length / 2;
    },
  },

  "one-bit-lamb-table-2": {
    what: "Table 2",
    claim: "1-bit LAMB ends as low as LAMB, and LAMB with one bit and nothing else does not.",
    rule: "2,000 steps, a warm-up of 17 % of them as in the paper, seed 1: 1-bit LAMB ÷ LAMB at most 1.02, and basic ÷ 1-bit LAMB above 1",
    measure: () =>
      losses({
        row: "one-bit-lamb-table-2",
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
    measured: (readings) =>
      `1-bit LAMB ÷ LAMB ${ratioText(readings.ratio("one-bit-lamb", "lamb"))}; basic ÷ 1-bit LAMB ${ratioText(readings.ratio("lamb-basic-one-bit", "one-bit-lamb"))}`,
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
    rule: "the small GPT, 2 ranks at 100 Mbit/s: with the measured steps and the paper's warm-up of 16.7 % a run is at least 2.2 times as fast (bench train)",
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
    rule: "from the paper's computing times and 4.1 Gbit/s: the gain at 64 nodes and a batch of 8 Ki is within 25 % of 4.5, it grows with the nodes and shrinks with the batch",
    *measure() {
      for (const step of table5)
        if (step.network === "Ethernet" && step.nodes > 1)
          yield reading(`gain, ${step.nodes} nodes, batch ${step.batch} Ki`, gainOf(step), "ratio");
    },
    measured: (readings) =>
      `64 nodes: ${[8, 16, 32, 64].map((batch) => `${batch} Ki ${readings.of(`gain, 64 nodes, batch ${batch} Ki`).toFixed(1)} ×`).join(", ")}; 2 nodes, 8 Ki: ${readings.of("gain, 2 nodes, batch 8 Ki").toFixed(1)} ×`,
    holds(readings) {
      const byNodes = [2, 4, 8, 16, 32, 64].map((nodes) => readings.of(`gain, ${nodes} nodes, batch 8 Ki`));
      const byBatch = [8, 16, 32, 64].map((batch) => readings.of(`gain, 64 nodes, batch ${batch} Ki`));
      const isGrowing = byNodes.every((gain, i) => i === 0 || gain > byNodes[i - 1]!);
      const isShrinking = byBatch.every((gain, i) => i === 0 || gain < byBatch[i - 1]!);
      return isGrowing && isShrinking && Math.abs(byBatch[0]! / 4.5 - 1) <= 0.25;
    },
  },

  "one-bit-lamb-table-5-ethernet": shareRow("Ethernet"),
  "one-bit-lamb-table-5-infiniband": shareRow("InfiniBand"),

  "one-bit-lamb-figure-6": {
    what: "Figure 6",
    claim: "Scaling ratios are larger in layers whose variance still falls.",
    rule: "400 steps, a warm-up of 80: the rank correlation between a layer's last ratio and the fall of its variance since the warm-up is above 0.5",
    async *measure() {
      for await (const { step, of } of probed({
        row: "one-bit-lamb-figure-6",
        method: "one-bit-lamb",
        steps: 400,
        at: [80, 400],
        workers: 2,
      }))
        for (const [i, name] of of.texts("layers/names").entries()) {
          const [norm, change] = [of.list("layers/variance_norms")[i], of.list("layers/changes")[i]];
          if (typeof norm === "number") yield reading(`norm of ${name} after ${step}`, norm);
          if (step === 400 && typeof change === "number") yield reading(`change of ${name}`, change);
        }
    },
    measured: (readings) => `rank correlation ${correlationWithFall(readings).toFixed(2)}`,
    holds: (readings) => correlationWithFall(readings) > 0.5,
  },

  "one-bit-lamb-figure-7": {
    what: "Figure 7",
    claim: "The authors' exchange over NCCL is at least as fast as over MPI.",
    rule: "not theirs: our exchange of 1 bit over TCP takes less than PyTorch's compressed one over Gloo, 16 Mi parameters, 2 and 4 ranks (bench exchange)",
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
        .map(
          (ranks) =>
            `${ranks} ranks: ${["1-bit", "pytorch compressed"].map((side) => `${readings.of(`time of ${side}, ${ranks} ranks`).toFixed(0)} ms`).join(" against ")}`,
        )
        .join("; "),
    holds: (readings) =>
      [2, 4].every(
        (ranks) =>
          readings.of(`time of 1-bit, ${ranks} ranks`) < readings.of(`time of pytorch compressed, ${ranks} ranks`),
      ),
  },

  "one-bit-lamb-table-6": {
    what: "Table 6",
    claim: "The result does not depend on the number of GPUs.",
    rule: "2, 4, 8 and 16 workers with the same rows in all: the losses of 1-bit LAMB ÷ LAMB are within 3 % of each other, seed 1",
    measure: () =>
      losses({
        row: "one-bit-lamb-table-6",
        seeds: [1],
        trials: worlds.flatMap((workers) =>
          ["lamb", "one-bit-lamb"].map((method) => ({
            name: `${method} × ${workers}`,
            method,
            workers,
            changes: [`data.batchSize=${32 / workers}`],
          })),
        ),
      }),
    measured: (readings) =>
      ratiosOf(readings, worlds)
        .map((ratio, i) => `${worlds[i]}: ${ratio.toFixed(3)}`)
        .join(", "),
    holds(readings) {
      const ratios = ratiosOf(readings, worlds);
      return Math.max(...ratios) / Math.min(...ratios) <= 1.03;
    },
  },

  "one-bit-lamb-table-7": {
    what: "Table 7",
    claim: "1-bit LAMB is as good as LAMB at every batch size.",
    rule: "with 1, 4 and 16 times the batch, 200 steps: loss of 1-bit LAMB ÷ LAMB at most 1.02 for each, seed 1",
    measure: () =>
      losses({
        row: "one-bit-lamb-table-7",
        seeds: [1],
        steps: 200,
        trials: batches.flatMap((accumulate) => [
          { name: `lamb × ${accumulate}`, method: "lamb", changes: [`accumulate=${accumulate}`] },
          {
            name: `one-bit-lamb × ${accumulate}`,
            method: "one-bit-lamb",
            changes: [`accumulate=${accumulate}`, "optimizer.warmup=34"],
          },
        ]),
      }),
    measured: (readings) =>
      ratiosOf(readings, batches)
        .map((ratio, i) => `× ${batches[i]}: ${ratio.toFixed(3)}`)
        .join(", "),
    holds: (readings) => ratiosOf(readings, batches).every((ratio) => ratio <= 1.02),
  },

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
    measure: () =>
      losses({
        row: "one-bit-lamb-scaling",
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

const ratiosOf = (readings: Readings, by: readonly number[]) =>
  by.map((count) => readings.ratio(`one-bit-lamb × ${count}`, `lamb × ${count}`).mean);

function curveRatios(readings: Readings): number[] {
  const bySteps = Map.groupBy(readings.all("ratio after "), ([name]) => name.split(",")[0]);
  return [...bySteps.values()].map((all) => all.reduce((sum, [, ratio]) => sum + ratio, 0) / all.length);
}

function plateaus(readings: Readings): { settledShare: number; risenShare: number } {
  const layers = readings
    .all("ratio of ")
    .flatMap(([name]) => (name.endsWith(" after 1000") ? [name.slice(0, -11)] : []));
  const at = (name: string, step: number) => readings.of(`ratio of ${name} after ${step}`);
  const share = (is: (name: string) => boolean) => layers.filter(is).length / layers.length;
  return {
    settledShare: share((name) => Math.abs(at(name, 1000) / at(name, 667) - 1) < 0.1),
    risenShare: share((name) => at(name, 1000) > at(name, 100)),
  };
}

function variancesFall(readings: Readings): number[] {
  const layers = readings
    .all("norm of ")
    .flatMap(([name]) => (name.endsWith(" after 1000") ? [name.slice(0, -11)] : []));
  return layers.map((name) => readings.of(`norm of ${name} after 333`) / readings.of(`norm of ${name} after 1000`));
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
