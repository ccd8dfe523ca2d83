/** The rows of Ishikawa et al. 2024, "Lion Cub". */
import { type Codec, l1 } from "@terse/codecs";
import { loopback } from "@terse/collectives";
import {
  allToAll,
  carryAlone,
  count,
  crossing,
  type Message,
  memoryOfRound,
  PackedBits,
  parameterServer,
  parameterServerEfficient,
  standardSchemes,
  tableOne,
  type VoteScheme,
  vote,
} from "@terse/exchange";
import { chanceOfTie } from "@terse/train/agreement";
import { type Items, isFalling, percentText, type Reading, type Readings, ratioText, reading } from "./item.ts";
import { quantilesByLayer, shareNearerToLaplace, shares } from "./lion-cub-quantiles.ts";
import { allReduceBits, tableA1 } from "./lion-cub-table-a1.ts";
import { probed } from "./probed.ts";
import { asGood, recordedLosses, recordedValue } from "./recorded.ts";
import { losses } from "./trained.ts";

const voteSchemes: Readonly<Record<keyof typeof tableOne, () => VoteScheme>> = {
  "parameter-server": parameterServer,
  "parameter-server-efficient": parameterServerEfficient,
  direct: count,
  compressed: allToAll,
};

/** Payload bytes of the busiest rank, counted, by closed form, and by Table 1 of the paper. */
async function* countedVotes(): AsyncGenerator<Reading> {
  const n = 64 * 840; // whole words on up to eight ranks
  for (const [name, scheme] of Object.entries(voteSchemes))
    for (let ranks = 2; ranks <= 8; ranks++) {
      const votes = scheme();
      const sent = await Promise.all(
        loopback(ranks).map(async (group) => {
          const u = new PackedBits(n, undefined, ({ signs }) => void signs.fill(0x5a + group.rank));
          await carryAlone(vote, group, u, { outcome: "plus" }, { schemes: { votes } });
          const { bytes } = group.sent();
          await votes.close(group);
          await group.close();
          return { bytes, form: votes.cost(n, ranks, group.rank, "plus").bytes };
        }),
      );
      const most = sent.reduce((a, b) => (b.bytes > a.bytes ? b : a));
      const table = tableOne[name as keyof typeof tableOne].bits(ranks, n, 32, 1) / 8;
      yield reading(`counted ÷ closed form, ${name}, ${ranks} ranks`, most.bytes / most.form, "ratio");
      yield reading(`counted ÷ Table 1, ${name}, ${ranks} ranks`, most.bytes / table, "ratio");
    }
}

const probeRow = { method: "lion-cub", steps: 1000, at: [50, 200, 400, 1000] } as const;
const heads = ["l1", "linf-without-zero", "linf-logarithmic", "linf"];
const betas = [0.9, 0.95, 0.99, 0.999];

export const lionCub: Items = {
  "lion-cub-figure-1": {
    what: "Figure 1",
    claim: "A diagram of 1-bit and p-bit all-reduces and of the synchronisation of momenta.",
    because: "it shows no measurement; ARCHITECTURE.md has ours",
  },

  "lion-cub-table-1": {
    what: "Table 1",
    claim: "Latencies and bits of four ways to count a majority vote.",
    rule: "2 to 8 ranks: bytes counted on the wire = our closed form, and none above the table's but counts, rounded to 2, 4, 8 bits",
    measure: countedVotes,
    measured(readings) {
      const form = readings.all("counted ÷ closed form").map(([, ratio]) => ratio);
      const most = (name: string) =>
        Math.max(...readings.all(`counted ÷ Table 1, ${name}, `).map(([, ratio]) => ratio)).toFixed(2);
      const ways = Object.keys(voteSchemes).map((name) => `${name} ${most(name)}`);
      return `÷ closed form ${Math.min(...form)} to ${Math.max(...form)}; ÷ table at most: ${ways.join(", ")}`;
    },
    holds(readings) {
      const isExact = readings.all("counted ÷ closed form").every(([, ratio]) => ratio === 1);
      const isAbove = ([name, ratio]: [string, number]) => !name.startsWith(", direct") && ratio > 1.001;
      return isExact && !readings.all("counted ÷ Table 1").some(isAbove);
    },
  },

  "lion-cub-figure-2": {
    what: "Figure 2",
    claim: "The direct all-reduce is faster where latency is high or ranks are many, 1 bit where bandwidth binds.",
    rule: "Table 1 at 49 Gbit/s: the number of parameters above which 1 bit is faster grows with the latency and with the ranks",
    *measure() {
      for (const ranks of [8, 64, 512])
        for (const alpha of [1e-6, 1e-5, 1e-4]) {
          const network = { alpha, beta: 8 / 49e9 };
          const parameters = crossing(tableOne.direct, tableOne.compressed, { workers: ranks }, network) ?? Number.NaN;
          yield reading(`parameters at the crossing, ${ranks} ranks, ${alpha} s`, parameters);
        }
    },
    measured(readings) {
      const [first, ...others] = readings.all("parameters").map(([, n]) => n);
      const text = (n: number) => `${Number((n / 1e6).toPrecision(2))} M`;
      return `crossing at ${text(first!)} parameters (8 ranks, 1 µs) to ${text(others.at(-1)!)} (512 ranks, 100 µs)`;
    },
    holds(readings) {
      const at = (ranks: number, alpha: number) =>
        readings.of(`parameters at the crossing, ${ranks} ranks, ${alpha} s`);
      const pairs = [
        [at(8, 1e-6), at(8, 1e-5)],
        [at(8, 1e-5), at(8, 1e-4)],
        [at(8, 1e-5), at(64, 1e-5)],
        [at(64, 1e-5), at(512, 1e-5)],
      ];
      return pairs.every(([less, more]) => less! < more!);
    },
  },

  "lion-cub-figure-3": {
    what: "Figure 3",
    claim: "Where a tie or a zero always has the same sign training diverges; alternating is stable.",
    rule: "2 workers, where half can tie, 1,000 steps: loss of always minus ÷ alternating above 1.1 with every seed",
    measure: (row) =>
      losses({
        row,
        seeds: [1, 2],
        steps: 1000,
        trials: [
          { name: "alternating", method: "lion-cub", workers: 2 },
          {
            name: "always minus",
            method: "lion-cub",
            workers: 2,
            changes: ["optimizer.tie=minus", "optimizer.zero=minus"],
          },
        ],
      }),
    measured: (readings) => ratioText(readings.ratio("always minus", "alternating")),
    holds: (readings) => readings.ratio("always minus", "alternating").least > 1.1,
  },

  "lion-cub-table-2": {
    what: "Table 2",
    claim:
      "Majority votes against standard Lion's signs, 4 and 8 workers: match 58.3 and 64.2 %, flip 4.5 and 8.7, tie 37.2 and 27.1.",
    rule: "steps 50 to 1,000: ties at most chance (37.5 and 27.3 %), fewer with 8 workers; flips fewer than ties; match + tie > 85 %",
    async *measure(row) {
      for (const workers of [4, 8])
        for await (const { step, of } of probed({ row, ...probeRow, workers }))
          for (const kind of ["match", "flip", "ties"])
            yield reading(`${kind}, ${workers} workers, step ${step}`, of(`update/${kind}`), "share");
    },
    measured: (readings) =>
      [4, 8]
        .map((workers) => {
          const step = probeRow.at.at(-1);
          const [match, flip, ties] = ["match", "flip", "ties"].map((kind) =>
            percentText(readings.of(`${kind}, ${workers} workers, step ${step}`)),
          );
          const chance = percentText(chanceOfTie(workers));
          return `${workers} workers, step ${step}: match ${match}, flip ${flip}, tie ${ties} (chance ${chance})`;
        })
        .join("; "),
    holds: (readings) =>
      probeRow.at.every((step) => {
        const of = (kind: string, workers: number) => readings.of(`${kind}, ${workers} workers, step ${step}`);
        const each = [4, 8].every(
          (workers) =>
            of("ties", workers) <= chanceOfTie(workers) + 0.01 &&
            of("flip", workers) < of("ties", workers) &&
            of("match", workers) + of("ties", workers) > 0.85,
        );
        return each && of("ties", 8) < of("ties", 4);
      }),
  },

  "lion-cub-figure-4": {
    what: "Figure 4",
    claim:
      "The update before its sign is distributed like Laplace's, with a heavy tail; the head's largest is far above its mean.",
    rule: "step 400: in most layers four quantiles of |c| ÷ mean are nearer to Laplace's than to the normal's; largest ÷ mean is largest in the head",
    async *measure(row) {
      for await (const { of } of probed({ row, method: "lion-cub", steps: 400, at: [400], workers: 4 })) {
        const layers = quantilesByLayer(of);
        yield reading("layers nearer to Laplace's", shareNearerToLaplace(layers), "share");
        for (const { name, quantiles } of layers)
          for (const [i, share] of Object.keys(shares).entries())
            yield reading(`${share} ÷ mean of ${name}`, quantiles[i]!, "ratio");
        for (const [name, value] of of.byLayer("layers/update_largest"))
          yield reading(`largest ÷ mean of ${name}`, value, "ratio");
      }
    },
    measured(readings) {
      const [[name, most]] = sortedDown(readings.all("largest ÷ mean of ")) as [[string, number]];
      const nearer = percentText(readings.of("layers nearer to Laplace's"));
      return `nearer to Laplace's: ${nearer} of the layers; largest ÷ mean: ${name} ${most.toFixed(0)}`;
    },
    holds(readings) {
      const [[name]] = sortedDown(readings.all("largest ÷ mean of ")) as [[string, number]];
      return readings.of("layers nearer to Laplace's") > 0.5 && isHead(name);
    },
  },

  "lion-cub-figure-5": {
    what: "Figure 5",
    claim:
      "L1 levels keep standard Lion's sign more often than 1 bit; Q∞ seldom, without a zero and logarithmic less often than 1 bit.",
    rule: "at step 400, 4 and 8 workers, 4 bits: match of L1 > 1 bit > without zero and logarithmic > Q∞, and L1 flips fewer than 1 bit",
    async *measure(row) {
      for (const workers of [4, 8])
        for await (const { of } of probed({ row, method: "lion-cub", steps: 400, at: [400], workers })) {
          for (const kind of ["match", "flip"]) {
            yield reading(`${kind} of 1 bit, ${workers} workers`, of(`update/${kind}`), "share");
            const shares = of.list(`quantizers/${kind}`) as number[];
            for (const [i, name] of of.texts("quantizers/names").entries())
              yield reading(`${kind} of ${name}, ${workers} workers`, shares[i]!, "share");
          }
        }
    },
    measured: (readings) =>
      [4, 8]
        .map((workers) => {
          const each = ["1 bit", ...heads.map((name) => `${name} 4 bits`)].map(
            (name) =>
              `${name.replace(" 4 bits", "")} ${percentText(readings.of(`match of ${name}, ${workers} workers`))}`,
          );
          return `match, ${workers} workers: ${each.join(", ")}`;
        })
        .join("; "),
    holds: (readings) =>
      [4, 8].every((workers) => {
        const match = (name: string) => readings.of(`match of ${name}, ${workers} workers`);
        const flip = (name: string) => readings.of(`flip of ${name}, ${workers} workers`);
        const between = [match("linf-without-zero 4 bits"), match("linf-logarithmic 4 bits")];
        return (
          match("l1 4 bits") > match("1 bit") &&
          match("1 bit") > Math.max(...between) &&
          Math.min(...between) > match("linf 4 bits") &&
          flip("l1 4 bits") < flip("1 bit")
        );
      }),
  },

  "lion-cub-figure-6": {
    what: "Figure 6",
    claim: "With β₂ 0.95 averaging momenta every 10 steps helps, and the first and last layers are as good as all.",
    rule: "β₂ 0.95, 1,000 steps: loss of all ÷ none below 1 with every seed, of first-and-last ÷ all at most 1.01 in the mean",
    measure: (row) =>
      losses({
        row,
        seeds: [1, 2],
        steps: 1000,
        every: 50,
        trials: ["none", "all", "first-and-last"].map((segments) => ({
          name: segments,
          method: "lion-cub-beta-0.95",
          changes: [
            `optimizer.momentumSync.segments=${segments}`,
            ...(segments === "none" ? [] : ["optimizer.momentumSync.every=10"]),
          ],
        })),
      }),
    measured: (readings) =>
      `all ÷ none ${ratioText(readings.ratio("all", "none"))}; first-and-last ÷ all ${ratioText(readings.ratio("first-and-last", "all"))}`,
    holds: (readings) => readings.ratio("all", "none").most < 1 && readings.ratio("first-and-last", "all").mean <= 1.01,
  },

  "lion-cub-figure-7": {
    what: "Figure 7",
    claim: "The standard deviation of momenta between workers falls as β₂ rises, and is flat over time.",
    rule: "step 400: it falls from β₂ 0.9 to 0.999; 0.95 ÷ 0.99 within 30 % of 2.26, which independent gradients give",
    async *measure(row) {
      for (const beta2 of betas)
        for await (const { step, of } of probed({
          row,
          method: "lion-cub",
          changes: [`optimizer.beta2=${beta2}`],
          steps: 400,
          at: [20, 50, 100, 150, 200, 250, 300, 350, 400],
          workers: 4,
        }))
          yield reading(`deviation, β₂ ${beta2}, step ${step}`, of("momentum/deviation"));
    },
    measured(readings) {
      const of = (beta2: number) => readings.of(`deviation, β₂ ${beta2}, step 400`);
      return `${betas.map((beta2) => `β₂ ${beta2}: ${of(beta2).toExponential(1)}`).join(", ")}; 0.95 ÷ 0.99: ${(of(0.95) / of(0.99)).toFixed(2)}`;
    },
    holds(readings) {
      const of = (beta2: number) => readings.of(`deviation, β₂ ${beta2}, step 400`);
      return isFalling(betas.map(of)) && Math.abs(of(0.95) / of(0.99) / 2.26 - 1) <= 0.3;
    },
  },

  "lion-cub-figure-8": {
    what: "Figure 8",
    claim:
      "The momenta of the embedding and of the head differ between workers about 100 times as much as those of other layers.",
    rule: "at step 400, 4 workers: the two matrices with the largest mean deviation are the token embedding and the head",
    async *measure(row) {
      for await (const { of } of probed({ row, method: "lion-cub", steps: 400, at: [400], workers: 4 }))
        for (const [name, value] of of.byLayer("layers/momentum_deviation"))
          yield reading(`deviation of ${name}`, value);
    },
    measured(readings) {
      const all = sortedDown(matricesOf(readings.all("deviation of ")));
      const median = all[all.length >> 1]![1];
      return `${all
        .slice(0, 3)
        .map(([name, value]) => `${name} ${(value / median).toFixed(1)} ×`)
        .join(", ")} the median matrix`;
    },
    holds(readings) {
      const [first, second] = sortedDown(matricesOf(readings.all("deviation of "))).map(([name]) => name);
      return [first!, second!].every((name) => isHead(name) || isTokenEmbedding(name)) && first !== second;
    },
  },

  "lion-cub-figure-9": {
    what: "Figure 9",
    claim: "With L1 levels from −15 to 15 averaging momenta changes nothing, with β₂ 0.95 either.",
    rule: "8 workers, 5 bits, β₂ 0.95: loss with ÷ without averaging within 1 % of 1 in the mean over the seeds",
    measure: (row) =>
      losses({
        row,
        seeds: [1, 2],
        trials: ["none", "all"].map((segments) => ({
          name: segments,
          method: "lion-cub-beta-0.95",
          workers: 8,
          changes: [
            "optimizer.bits=5",
            `optimizer.momentumSync.segments=${segments}`,
            ...(segments === "none" ? [] : ["optimizer.momentumSync.every=10"]),
          ],
        })),
      }),
    measured: (readings) => ratioText(readings.ratio("all", "none")),
    holds: (readings) => Math.abs(readings.ratio("all", "none").mean - 1) <= 0.01,
  },

  "lion-cub-figure-10": {
    what: "Figure 10",
    claim: "On Ethernet communication shrinks with the bits, up to a step 5.1 times as fast.",
    rule: "bench train, 100 Mbit/s: waiting falls from 32 to 16 bits and to 1, and 1 bit's step is at least 5.1 times as fast as 32's",
    *measure() {
      for (const ranks of [2, 4])
        for (const side of ["lion fp32", "lion bf16", "lion-cub 1-bit"])
          for (const metric of ["step_ms", "exposed_ms_least"]) {
            const name = `${side} without-overlap ×${ranks} 100mbit`;
            yield reading(
              `${metric} of ${side}, ${ranks} ranks`,
              recordedValue("train", name, metric, `${ranks}x100mbit`),
              "ms",
            );
          }
    },
    measured: (readings) =>
      [2, 4]
        .map((ranks) => {
          const of = (side: string) => readings.of(`step_ms of ${side}, ${ranks} ranks`);
          const sides = ["lion fp32", "lion bf16", "lion-cub 1-bit"];
          return `${ranks} ranks: ${sides.map((side) => `${of(side).toFixed(0)} ms`).join(", ")} (${(of(sides[0]!) / of(sides[2]!)).toFixed(1)} ×)`;
        })
        .join("; "),
    holds: (readings) =>
      [2, 4].every((ranks) => {
        const waits = ["lion fp32", "lion bf16", "lion-cub 1-bit"].map((side) =>
          readings.of(`exposed_ms_least of ${side}, ${ranks} ranks`),
        );
        const of = (side: string) => readings.of(`step_ms of ${side}, ${ranks} ranks`);
        return isFalling(waits) && of("lion fp32") / of("lion-cub 1-bit") >= 5.1;
      }),
  },

  "lion-cub-table-a1": {
    what: "Table A.1",
    claim: "The numbers of Figure 10: GPTs of 350 M to 1,558 M parameters on 4 and 8 GPUs.",
    rule: "from one row the cost model predicts all steps on Ethernet with 32 and 16 bits within 20 %; our 1 bit takes less than their 4",
    *measure() {
      const given = tableA1.find(({ parameters, bits, nodes }) => parameters === 774 && bits === 32 && nodes === 2)!;
      const bitsPerMillisecond = allReduceBits(given) / given.communication;
      yield reading("link", bitsPerMillisecond / 1e6, "Gbit/s");
      for (const [i, step] of tableA1.entries()) {
        if (step.network !== "Ethernet" || step.bits < 16) continue;
        const predicted = step.computing + allReduceBits(step) / bitsPerMillisecond;
        const name = `${step.parameters} M, ${step.bits} bits, ${step.nodes} nodes, row ${i + 1}`;
        yield reading(`predicted ÷ measured, ${name}`, predicted / (step.computing + step.communication), "ratio");
      }
      for (const nodes of [2, 4]) {
        const own = allReduceBits({ ranks: 2 * nodes, parameters: 774, bits: 1 }) / bitsPerMillisecond;
        const theirs = Math.min(
          ...tableA1
            .filter((step) => step.parameters === 774 && step.bits === 4 && step.nodes === nodes)
            .map((step) => step.communication),
        );
        yield reading(`our 1 bit ÷ their 4 bits, 774 M, ${nodes} nodes`, own / theirs, "ratio");
      }
    },
    measured(readings) {
      const all = readings.all("predicted ÷ measured, ");
      const far = all.filter(([, ratio]) => Math.abs(ratio - 1) > 0.2);
      const text = far.map(([name, ratio]) => `${name.replace(/, row.*/, "")}: ${ratio.toFixed(2)}`).join("; ");
      const own = readings.all("our 1 bit ÷ their 4 bits").map(([, ratio]) => ratio.toFixed(2));
      return `${all.length - far.length} of ${all.length} rows within 20 %${text && `; beyond: ${text}`}; our 1 bit ÷ their 4: ${own.join(", ")}`;
    },
    holds: (readings) =>
      readings.all("predicted ÷ measured").every(([, ratio]) => Math.abs(ratio - 1) <= 0.2) &&
      readings.all("our 1 bit").every(([, ratio]) => ratio < 1),
  },

  "lion-cub-figure-12": asGood({
    what: "Figure 12",
    claim: "8 bits are as good as 32, with β₂ 0.95 too.",
    method: "lion-cub-8-bits-beta-0.95",
    other: "lion-beta-0.95",
  }),

  "lion-cub-figure-12-sync": {
    what: "Figure 12",
    claim: "With β₂ 0.95 few bits are behind, and averaging the head's momenta recovers it.",
    rule: "loss of 1 bit ÷ 32 above 1, and with averaging ÷ without below 1, with every seed (bench convergence)",
    measure: () => recordedLosses(["lion-cub-beta-0.95", "lion-beta-0.95", "lion-cub-beta-0.95-sync"]),
    measured(readings) {
      const behind = ratioText(readings.ratio("lion-cub-beta-0.95", "lion-beta-0.95"));
      return `1 bit ÷ 32 ${behind}; with ÷ without ${ratioText(readings.ratio("lion-cub-beta-0.95-sync", "lion-cub-beta-0.95"))}`;
    },
    holds: (readings) =>
      readings.ratio("lion-cub-beta-0.95", "lion-beta-0.95").least > 1 &&
      readings.ratio("lion-cub-beta-0.95-sync", "lion-cub-beta-0.95").most < 1,
  },

  "lion-cub-figure-13": {
    what: "Figure 13",
    claim: "Of images, too, 1 bit is as good as 32 after as many steps.",
    rule: "bench models, CIFAR-10: accuracy with 1 bit at most a point below 32 bits, in the mean over 2 seeds",
    *measure() {
      for (const model of ["resnet18", "deit"])
        for (const method of ["lion", "lion-cub"])
          for (const seed of [1, 2]) {
            const setting = `${model}-${method}`;
            const accuracy = recordedValue("models", `${setting}, seed ${seed}`, "validation_accuracy", setting);
            yield reading(`accuracy of ${setting}, seed ${seed}`, accuracy, "share");
          }
    },
    measured: (readings) =>
      ["resnet18", "deit"]
        .map(
          (model) =>
            `${model}: ${["lion", "lion-cub"].map((method) => percentText(meanOf(readings, `accuracy of ${model}-${method}, `))).join(" against ")}`,
        )
        .join("; "),
    holds: (readings) =>
      ["resnet18", "deit"].every(
        (model) =>
          meanOf(readings, `accuracy of ${model}-lion-cub, `) >= meanOf(readings, `accuracy of ${model}-lion, `) - 0.01,
      ),
  },

  "lion-cub-figure-a1": {
    what: "Figure A.1",
    claim:
      "Memory is alike for small models; with 1 bit it is far higher for large ones, because of the buffers for packing.",
    rule: "64 Mi parameters, 4 ranks: 1 bit holds more than 4 bytes a parameter beyond the vector, a whole copy",
    *measure() {
      for (const mi of [1, 16, 64]) {
        const n = mi * 2 ** 20;
        for (const [name, message] of Object.entries(messagesOf(n)))
          yield reading(
            `bytes a parameter of ${name}, ${mi} Mi`,
            memoryOfRound([message], 4, 0, standardSchemes) / n,
            "B",
          );
      }
    },
    measured: (readings) =>
      [16, 64]
        .map(
          (mi) =>
            `${mi} Mi: ${Object.keys(messagesOf(1))
              .map((name) => `${name} ${readings.of(`bytes a parameter of ${name}, ${mi} Mi`).toFixed(2)} B`)
              .join(", ")}`,
        )
        .join("; "),
    holds: (readings) => readings.of("bytes a parameter of 1 bit, 64 Mi") > 4,
  },

  "lion-cub-figure-a2": {
    what: "Figure A.2",
    claim: "With 16 workers 1 bit still trains as well, and 4 bits cannot be summed in bytes.",
    rule: "16 workers, β₂ 0.99: loss of 1 bit ÷ dense Lion at most 1.02, seed 1",
    measure: (row) =>
      losses({
        row,
        seeds: [1],
        trials: ["lion", "lion-cub"].map((method) => ({ name: method, method, workers: 16 })),
      }),
    measured: (readings) => ratioText(readings.ratio("lion-cub", "lion")),
    holds: (readings) => readings.ratio("lion-cub", "lion").mean <= 1.02,
  },

  "lion-cub-figure-a3": {
    what: "Figure A.3",
    claim: "PyTorch's DDP is slower than one fused all-reduce, and that is slower than Lion Cub.",
    rule: "steps of the small GPT at 100 Mbit/s, 2 and 4 ranks: DDP in fp32 > our fused f32 without overlap > 1 bit (bench train)",
    *measure() {
      for (const ranks of [2, 4])
        for (const side of ["pytorch ddp fp32", "lion fp32 without-overlap", "lion-cub 1-bit without-overlap"])
          yield reading(
            `step of ${side}, ${ranks} ranks`,
            recordedValue("train", `${side} ×${ranks} 100mbit`, "step_ms", `${ranks}x100mbit`),
            "ms",
          );
    },
    measured: (readings) =>
      [2, 4]
        .map(
          (ranks) =>
            `${ranks} ranks: ${stepsOf(readings, ranks)
              .map((ms) => `${ms.toFixed(0)} ms`)
              .join(", ")}`,
        )
        .join("; "),
    holds: (readings) => [2, 4].every((ranks) => isFalling(stepsOf(readings, ranks))),
  },

  "lion-cub-figure-c2": {
    what: "Figure C.2",
    claim:
      "L1 levels follow the quantile function of a Laplace distribution better than levels up to the largest value.",
    rule: "for 3 to 8 bits and 10⁶ values the mean distance of the levels from equation (1) is smaller with L1's",
    *measure() {
      for (let bits = 3; bits <= 8; bits++)
        for (const [name, reach] of Object.entries({ l1: 2, linf: Math.log(1e6) }))
          yield reading(`distance of ${name}, ${bits} bits`, distanceFromQuantiles(bits, reach));
    },
    measured: (readings) =>
      [4, 8]
        .map(
          (bits) =>
            `${bits} bits: ${["l1", "linf"].map((name) => `${name} ${readings.of(`distance of ${name}, ${bits} bits`).toFixed(2)}`).join(", ")}`,
        )
        .join("; "),
    holds: (readings) =>
      readings.all("distance of l1, ").every(([bits, distance]) => distance < readings.of(`distance of linf, ${bits}`)),
  },
};

const messagesOf = (n: number): Readonly<Record<string, Message>> => ({
  "32 bits": { kind: "mean", n },
  "8 bits": { kind: "signOfLevels", n, codec: l1({ bits: 8, unscaled: true }) as Codec },
  "4 bits": { kind: "signOfLevels", n, codec: l1({ bits: 4, unscaled: true }) as Codec },
  "1 bit": { kind: "vote", n, outcome: "plus" },
});

/**
 * The mean distance of 2 s + 1 even levels up to `reach` from those of equation (1), for a Laplace distribution whose
 * mean |x| is 1.
 */
function distanceFromQuantiles(bits: number, reach: number): number {
  const quantile = (p: number) => (p < 0.5 ? Math.log(2 * p) : -Math.log(2 * (1 - p)));
  const parts = 2 ** bits + 1;
  const s = 2 ** (bits - 1) - 1;
  const wanted = Array.from(
    { length: 2 * s + 1 },
    (_, k) => (quantile((k + 1) / parts) + quantile((k + 2) / parts)) / 2,
  );
  return wanted.reduce((sum, q, k) => sum + Math.abs(q - (reach * (k - s)) / s), 0) / wanted.length;
}

const stepsOf = (readings: Readings, ranks: number) =>
  ["pytorch ddp fp32", "lion fp32 without-overlap", "lion-cub 1-bit without-overlap"].map((side) =>
    readings.of(`step of ${side}, ${ranks} ranks`),
  );

const meanOf = (readings: Readings, prefix: string) => {
  const values = readings.all(prefix).map(([, value]) => value);
  return values.reduce((a, b) => a + b, 0) / values.length;
};

const sortedDown = <T>(all: readonly (readonly [T, number])[]) => all.toSorted(([, a], [, b]) => b - a);
const isHead = (name: string) => name === "head.weight";
const isTokenEmbedding = (name: string) => name === "embedding.weight";
const matricesOf = (all: readonly (readonly [string, number])[]) =>
  all.filter(([name]) => /weight$/.test(name) && !/(norm|ln)/i.test(name));
