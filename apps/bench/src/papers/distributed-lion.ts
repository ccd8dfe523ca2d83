/** The rows of Liu et al. 2024, "Distributed Lion", as its slides show them. */
import { loopback } from "@terse/collectives";
import { carryAlone, PackedBits, parameterServer, vote } from "@terse/exchange";
import { curvesOf } from "../convergence/curves.ts";
import { type Items, type Readings, ratioText, reading } from "./item.ts";
import { recordedLines, recordedLosses } from "./recorded.ts";
import { sweep } from "./trained.ts";

/** Bits an element that a worker sends to the server and the server to each worker, counted on the wire. */
async function countedBits(workers: number, outcome: "plus" | "tally"): Promise<{ up: number; down: number }> {
  const n = 64 * 1000;
  const votes = parameterServer();
  const sent = await Promise.all(
    loopback(workers).map(async (group) => {
      const u = new PackedBits(n, undefined, ({ signs }) => void signs.fill(0x5a + group.rank));
      const result = await carryAlone(vote, group, u, { outcome }, { schemes: { votes } });
      (result as Disposable)[Symbol.dispose]();
      const { bytes } = group.sent();
      await group.close();
      return (8 * bytes) / n;
    }),
  );
  return { up: Math.min(...sent), down: Math.max(...sent) / (workers - 1) };
}

const sizes = [2, 3, 4, 5, 6, 7, 8];
const compressed = [
  "signsgd",
  "signum",
  "distributed-lion",
  "lion-cub",
  "adamw-terngrad",
  "sgd-dgc",
  "adamw-graddrop",
  "adamw-qsgd",
];

export const distributedLion: Items = {
  "distributed-lion-bandwidth": {
    what: "table of bandwidth",
    claim: "For d parameters and n workers a majority takes d bits up and d down, an average d up and log₂ n · d down.",
    rule: "bits counted on the wire with a parameter server, 2 to 8 workers: 1 up and 1 down; 1 up and ⌈log₂(n + 1)⌉ down",
    async *measure() {
      for (const n of sizes)
        for (const [name, outcome] of [
          ["majority", "plus"],
          ["average", "tally"],
        ] as const) {
          const { up, down } = await countedBits(n, outcome);
          yield reading(`bits up, ${name}, ${n} workers`, up, "bit");
          yield reading(`bits down, ${name}, ${n} workers`, down, "bit");
        }
    },
    measured: (readings) =>
      ["majority", "average"]
        .map(
          (name) =>
            `${name} ${["up", "down"].map((way) => `${range(readings, `bits ${way}, ${name}`)} ${way}`).join(", ")}`,
        )
        .join("; "),
    holds: (readings) =>
      sizes.every((n) => {
        const bits = (way: string, name: string) => readings.of(`bits ${way}, ${name}, ${n} workers`);
        return (
          bits("up", "majority") === 1 &&
          bits("down", "majority") === 1 &&
          bits("up", "average") === 1 &&
          bits("down", "average") === Math.ceil(Math.log2(n + 1))
        );
      }),
  },

  "distributed-lion-cifar10": {
    what: "picture of CIFAR-10",
    claim: "With 4 to 32 workers both forms are as good as global Lion, and better than GradDrop, DGC and TernGrad.",
    rule: "bench convergence, means over the seeds: majority ÷ Lion at most 1.02, and below TernGrad, DGC and GradDrop",
    measure: () => recordedLosses(["distributed-lion", "lion", "adamw-terngrad", "sgd-dgc", "adamw-graddrop"]),
    measured: (readings) =>
      ["lion", "adamw-terngrad", "sgd-dgc", "adamw-graddrop"]
        .map((other) => `÷ ${other} ${ratioText(readings.ratio("distributed-lion", other))}`)
        .join("; "),
    holds: (readings) =>
      readings.ratio("distributed-lion", "lion").mean <= 1.02 &&
      ["adamw-terngrad", "sgd-dgc", "adamw-graddrop"].every(
        (other) => readings.ratio("distributed-lion", other).mean < 1,
      ),
  },

  "distributed-lion-language": {
    what: "table of language and images",
    claim: "AdamW, global Lion, majority and average end alike.",
    rule: "the small GPT: global Lion, majority and average within 2 % of tuned AdamW in the mean over the seeds (bench convergence)",
    measure: () => recordedLosses(["adamw", "lion", "distributed-lion", "distributed-lion-average"]),
    measured: (readings) =>
      ["lion", "distributed-lion", "distributed-lion-average"]
        .map((method) => `${method} ÷ adamw ${ratioText(readings.ratio(method, "adamw"))}`)
        .join("; "),
    holds: (readings) =>
      ["lion", "distributed-lion", "distributed-lion-average"].every(
        (method) => Math.abs(readings.ratio(method, "adamw").mean - 1) <= 0.02,
      ),
  },

  "distributed-lion-error-by-bits": {
    what: "test error against bits",
    claim: "Distributed Lion is nearest to the corner of few bits and a small error.",
    rule: "no other method of bench convergence ends lower with as few bytes as Distributed Lion's or Lion Cub's votes",
    *measure() {
      for (const { method, bytesPerStep, last } of curvesOf(recordedLines("convergence")))
        if (compressed.includes(method)) {
          yield reading(`bytes of ${method}`, bytesPerStep, "B");
          yield reading(`loss of ${method}`, last.mean, "nats/byte");
        }
    },
    measured(readings) {
      const better = belowAndLeft(readings);
      return better.length === 0 ? "none" : `below and left of it: ${better.join(", ")}`;
    },
    holds: (readings) => belowAndLeft(readings).length === 0,
  },

  "distributed-lion-workers": sweep({
    what: "performance by workers",
    claim: "The gap between Distributed Lion and global Lion does not grow with the workers.",
    rule: "loss of the majority ÷ global Lion at most 1.02 with 2, 4, 8 and 16 workers, as many rows on each, seed 1",
    methods: ["distributed-lion", "lion"],
    values: [2, 4, 8, 16],
    at: (workers) => ({ workers }),
    holds: (ratios) => ratios.every((ratio) => ratio <= 1.02),
  }),
};

/** Methods of others that end lower than a vote of Lion's with no more bytes. */
function belowAndLeft(readings: Readings): string[] {
  const votes = ["distributed-lion", "lion-cub"];
  const isBetter = (method: string, than: string) =>
    readings.of(`loss of ${method}`) < readings.of(`loss of ${than}`) &&
    readings.of(`bytes of ${method}`) <= 1.001 * readings.of(`bytes of ${than}`);
  return readings
    .all("loss of ")
    .map(([method]) => method)
    .filter((method) => !votes.includes(method) && votes.some((vote) => isBetter(method, vote)));
}

function range(readings: Readings, prefix: string): string {
  const all = readings.all(prefix).map(([, value]) => value);
  const [least, most] = [Math.min(...all), Math.max(...all)];
  return least === most ? String(least) : `${least} to ${most}`;
}
