import type { Measured } from "@terse/exchange";
import { describe, expect, it } from "vitest";
import { checkedRecipe, readRecipe } from "../recipe.ts";
import { adviceText } from "./advice-text.ts";
import { advise, type MeasuredSteps, measuredSteps, networkOf } from "./advise.ts";
import { candidates, recipeOfCandidate } from "./candidates.ts";
import { sizesOf } from "./local-work.ts";

const nano = ["model.preset=nano", "optimizer.name=lion-cub", "optimizer.clip=0"];
const recipe = readRecipe("gpt-small", nano);

/** A network with this rate, in bits a second, and no latency; codecs take no time. */
function network(rate: number): Measured {
  const link = { alpha: 0, alphaLong: 0, perMessage: 0, perExchange: 0, beta: 8 / rate, burst: 0 };
  const codec = { encode: 0, decode: 0, vote: 0, setField: 0, compareField: 0, encodeHalf: 0, decodeHalf: 0 };
  return { link, codec: { ...codec, encodeInt8: 0, sumInt8: 0, decodeInt8: 0 } };
}

const measured: MeasuredSteps = {
  ranks: 2,
  threads: 1,
  step: 0.5,
  computing: 0.1,
  backward: 0.06,
  local: { update: 0, codecs: 0 },
  exposed: 0.4,
  sentBytes: 18_000,
};

describe("the measured steps of a run", () => {
  const line = (step: number, seconds: number) => ({
    step,
    step_seconds: seconds,
    "time/data": 0.01,
    "time/forward": 0.1,
    "time/backward": 0.2,
    "time/encode": 0.01,
    "time/wire": 0.3,
    "time/decode": 0.02,
    "time/update": 0.03,
    "time/exposed": 0.1,
    "ranks/compute_seconds": [1, 2, 3],
    sent_bytes: 1000 * step,
  });

  it("are those of its second half, and what is neither waiting nor the method's own is computing", () => {
    const lines = [line(0, 9), line(10, 9), line(20, 0.5), { step: 20, "val/loss": 1 }, line(30, 0.7)];
    const seen = measuredSteps(lines)!;
    expect(seen).toMatchObject({ ranks: 3, exposed: 0.1, backward: 0.2, sentBytes: 30_000 });
    expect(seen.local).toEqual({ update: 0.03, codecs: 0.03 });
    expect(seen.step).toBeCloseTo(0.6, 12);
    expect(seen.computing).toBeCloseTo(0.6 - 0.1 - 0.06, 12);
  });

  it("are none without such lines; the network is that of the last measurement", () => {
    expect(measuredSteps([{ step: 0, "val/loss": 1 }])).toBeUndefined();
    expect(networkOf([{ step: 0, "val/loss": 1 }])).toBeUndefined();
    const [slow, fast] = [network(1e6), network(1e9)];
    expect(
      networkOf([
        { step: 5, network: slow },
        { step: 9, network: fast },
      ]),
    ).toEqual(fast);
  });
});

describe("advice", () => {
  it("predicts what a dense mean adds: its bytes at the rate of the link, less what backward hides", async () => {
    const { rows } = await advise(recipe, measured, network(20e6));
    expect(rows.length).toBeGreaterThanOrEqual(candidates.length - 1);
    const dense = rows.find(({ name }) => name === "adamw, dense f32")!;
    const whole = (dense.bytes * 8) / 20e6;
    expect(dense.exposed).toBeGreaterThan(whole - measured.backward);
    expect(dense.exposed).toBeLessThan(whole + 1e-9);
    for (const row of rows) expect(row.step).toBeGreaterThanOrEqual(measured.computing + row.exposed);
  });

  it("expects of all methods the slowness of the run's own arithmetic, and that of its codecs", async () => {
    const local = { update: 5, codecs: 0.001 }; // seconds: an update that was slowed down, and codecs that were not
    const { rows } = await advise(recipe, { ...measured, local }, network(20e6));
    const work = ({ step, exposed }: (typeof rows)[number]) => step - exposed - measured.computing;
    const of = (name: string) => work(rows.find((row) => row.name === name)!);
    expect(of("adamw, dense f32")).toBeGreaterThan(1);
    expect(of("muon, every 30 steps 4 bits")).toBeGreaterThan(1);
    const swapped = { update: 0.001, codecs: 5 };
    const other = await advise(recipe, { ...measured, local: swapped }, network(20e6));
    expect(work(other.rows.find(({ name }) => name === "adamw, dense f32")!)).toBeLessThan(0.1);
  });

  it("names a method that sends fewer bits on a slow network, and dense ones on a fast one", async () => {
    const slow = adviceText(await advise(recipe, measured, network(1e5)), "adamw");
    expect(slow[0]).toBe("advice: of 500 ms a step, 100 ms are computing, and 400 ms (80%) waiting for messages");
    expect(slow[1]).toBe("network: α 0 ms, 1/β 100kbit");
    expect(slow.at(-2)).toMatch(/^\w+, every \d+ steps .* would be about \d+\.\d times as fast as this run/);
    expect(slow.at(-1)).toMatch(
      /^of those that send in every step, (lion-cub, 1 bit.*|distributed-lion|one-bit-\w+|zero-one-adam) is the fastest/,
    );
    const fast = await advise(recipe, { ...measured, computing: 10, step: 10 }, network(100e9));
    expect(adviceText(fast, "adamw").at(-1)).toMatch(/^dense is fast here/);
  });

  it("shares the bytes and the waiting of a round among its steps, and hides it behind those it may be late", async () => {
    const { rows } = await advise({ ...recipe, steps: 480 }, measured, network(1e5));
    const row = (name: string) => rows.find((row) => row.name === name)!;
    const [late, atOnce] = [row("muon, every 30 steps 4 bits"), row("adamw, every 10 steps 4 bits")];
    // Two ranks: half of 4 bits an element goes to the other owner, and half comes back as results.
    const parameters = row("adamw, dense f32").bytes / 4;
    expect(atOnce.bytes / (parameters / 2 / 10)).toBeCloseTo(1, 1);
    expect(late.bytes / (parameters / 2 / 30)).toBeCloseTo(1, 1);
    expect(atOnce.exposed).toBeCloseTo((atOnce.bytes * 8) / 1e5, 3);
    const hidden = (3 / 30) * measured.computing; // one step of each fragment's round, which takes longer
    expect(late.exposed).toBeCloseTo((late.bytes * 8) / 1e5 - hidden, 3);
  });

  it("is for runs with local steps too, whose other methods send in every step or after other steps", async () => {
    const local = readRecipe("gpt-small", [...nano, "local.syncEvery=5", "overlap=auto"]);
    const { rows } = await advise(local, measured, network(20e6));
    expect(rows.map(({ name }) => name)).toContain("lion-cub, 1 bit, all-to-all");
    expect(rows.filter(({ everyStep }) => !everyStep).length).toBe(3);
  });

  it.each(candidates)("has a recipe that no run refuses for $name, of any number of steps", (candidate) => {
    for (const steps of [480, 500, 7]) {
      const read = recipeOfCandidate({ ...recipe, steps }, candidate);
      expect(read.optimizer.name).toBe(candidate.optimizer.name);
      expect(read.optimizer.lr).toBe(recipe.optimizer.lr);
      expect(checkedRecipe(read)).toEqual(read);
      expect(read.local?.fragments).toBe(candidate.local && (steps === 480 ? (candidate.local["fragments"] ?? 1) : 1));
    }
  });

  it("leaves out what the rest of the recipe would refuse, and says why", async () => {
    const stopping = readRecipe("gpt-small", [...nano, "stop.patience=2", "evaluate.every=25"]);
    const { rows, leftOut } = await advise(stopping, measured, network(20e6));
    expect(rows.every(({ everyStep }) => everyStep)).toBe(true);
    expect(leftOut.filter((line) => /every \d+ steps .* is left out: .*evaluate\.every/.test(line))).toHaveLength(3);
  });

  it("measures the work of a method on matrices of the model's own shape", () => {
    const shape = (name: string, ...given: string[]) =>
      [...sizesOf(readRecipe(name, given)).matrix].sort((a, b) => a - b);
    expect(shape("gpt-small")).toEqual([256, 704]); // of the three of a gated MLP
    expect(shape("gpt-small", "model.name=gpt2")).toEqual([768, 1024]); // 3072 × 768, cut
    expect(shape("resnet18-cifar", "model.width=4")).toEqual([32, 288]); // 3 × 3 of 32 channels
  });
});
