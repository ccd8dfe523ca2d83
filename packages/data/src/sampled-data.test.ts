import { afterEach, describe, expect, it, vi } from "vitest";
import { sampledData } from "./sampled-data.ts";
import type { Arrays, Row, Samples } from "./samples.ts";

let clock = 0; // milliseconds
afterEach(() => {
  vi.restoreAllMocks();
  clock = 0;
});

/**
 * Samples that note which rows are asked for, and answer when `answers` are called. Asking, and using an answer, take
 * time.
 */
function samplesOf({ asking = 0, using = 0 } = {}) {
  const asked: number[][] = [];
  const answers: (() => void)[] = [];
  const facts = {
    source: "rows",
    unit: "row",
    trainingUnits: 100,
    validationUnits: 0,
    item: "row",
    itemsPerRow: 1,
    trainingSamples: 100,
    validationSamples: 0,
    fingerprint: "0".repeat(64),
  };
  const training = async (rows: readonly Row[]): Promise<Arrays> => {
    asked.push(rows.map(({ position }) => position));
    clock += asking;
    await new Promise<void>((answer) => answers.push(answer));
    const shape = [rows.length];
    const values = {
      get data() {
        clock += using;
        return new BigInt64Array(rows.length);
      },
      shape,
    };
    return { values };
  };
  return { asked, answers, samples: { facts, training, validation: training as never } satisfies Samples };
}

const given = { batchSize: 2, seed: 0, rank: 1, ranks: 2 };

describe("sampled data", () => {
  it("reads the first two steps when it is opened, and then two steps ahead", async () => {
    const { samples, asked, answers } = samplesOf();
    const data = sampledData(samples, { ...given, accumulate: 2 });
    const steps = [0, 1, 2].map((step) => [8 * step, 8 * step + 4].map((first) => [first + 2, first + 3]));
    expect(asked).toEqual(steps.slice(0, 2).flat());
    for (const answer of answers) answer();
    await data.next(2);
    expect(asked).toEqual(steps.flat());
  });

  it("reads ahead from where a restored run goes on", async () => {
    const { samples, asked, answers } = samplesOf();
    const data = sampledData(samples, given);
    asked.length = 0;
    data.restore({ ...data.state(), step: 10, rows: 40 } as never);
    for (const answer of answers) answer();
    const ahead = [
      [42, 43],
      [46, 47],
    ];
    expect(asked).toEqual(ahead);
    await data.next();
    expect(asked).toEqual([...ahead, [50, 51]]);
  });

  it("counts all that a step waits: asking for rows, their reading, and making tensors of them", async () => {
    vi.spyOn(performance, "now").mockImplementation(() => clock);
    const { samples, answers } = samplesOf({ asking: 1, using: 10 });
    const data = sampledData(samples, given);
    const first = data.next();
    clock += 100;
    answers[0]!();
    await first;
    expect(data.waitedSeconds).toBeCloseTo(0.111);
    clock += 1000; // between two steps
    answers[1]!();
    await data.next();
    expect(data.waitedSeconds).toBeCloseTo(0.122);
  });
});
