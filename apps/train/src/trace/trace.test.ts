import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { loopback } from "@terse/collectives";
import { lionCub, Optimizer } from "@terse/optimizers";
import { Arena, fromTypedArray, Linear, Sequential, scope } from "@terse/tensor";
import { expect, it } from "vitest";
import { StepMeter } from "../measures/step-meter.ts";
import { lanesOf, type TraceEvent } from "./chrome-trace.ts";
import { clockOffsets } from "./clock.ts";
import { Trace, type TracedPart } from "./trace.ts";
import { isTraceFile, writeTrace } from "./write-trace.ts";

const epsilon = 1e-3; // microseconds: Perfetto counts nanoseconds

/** Asserts what the trace event format asks of complete events and of names. */
export function expectValid(events: readonly TraceEvent[]): void {
  const threads = new Map<string, TraceEvent[]>();
  const named = new Set<string>();
  for (const event of events) {
    expect(typeof event.name).toBe("string");
    expect(Number.isInteger(event.pid) && Number.isInteger(event.tid)).toBe(true);
    const thread = `${event.pid}/${event.tid}`;
    if (event.ph === "M") {
      expect(["process_name", "process_sort_index", "thread_name"]).toContain(event.name);
      if (event.name === "thread_name") named.add(thread);
      continue;
    }
    expect(event.ph).toBe("X");
    expect(event.ts).toBeGreaterThanOrEqual(0);
    expect(event.dur).toBeGreaterThanOrEqual(0);
    threads.set(thread, [...(threads.get(thread) ?? []), event]);
  }
  // On a thread, two events follow each other or one is inside the other.
  for (const [thread, all] of threads) {
    expect(named).toContain(thread);
    const open: TraceEvent[] = [];
    const end = ({ ts, dur }: TraceEvent) => ts! + dur!;
    for (const event of all.toSorted((a, b) => a.ts! - b.ts! || b.dur! - a.dur!)) {
      while (open.length > 0 && end(open.at(-1)!) <= event.ts! + epsilon) open.pop();
      if (open.length > 0) expect(end(event)).toBeLessThanOrEqual(end(open.at(-1)!) + epsilon);
      open.push(event);
    }
  }
}

const onRanks = <T>(size: number, task: (group: ReturnType<typeof loopback>[number]) => Promise<T>): Promise<T[]> =>
  Promise.all(
    loopback(size).map(async (group) => {
      await using closing = group;
      return await task(closing);
    }),
  );

it("finds how far the clocks of other ranks are ahead", async () => {
  const ahead = [0, 5000, -123];
  const [offsets] = await onRanks(3, (group) => clockOffsets(group, () => performance.now() + ahead[group.rank]!));
  expect(offsets![0]).toBe(0);
  for (const rank of [1, 2]) expect(Math.abs(offsets![rank]! - ahead[rank]!)).toBeLessThan(50); // milliseconds
});

it("gives collectives that are under way at once lanes of their own", () => {
  const wire = (began: number, ended: number): TracedPart => ({ part: "wire", began, ended, step: 0 });
  const lanes = lanesOf([wire(5, 9), wire(0, 4), wire(3, 5), wire(4, 6), wire(9, 10)]);
  expect(lanes.map((lane) => lane.map(({ began }) => began))).toEqual([
    [0, 4, 9],
    [3, 5],
  ]);
});

it("is one file of all ranks, of the steps that were asked for", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-trace-"));
  try {
    const files = await onRanks(2, async (group) => {
      const trace = new Trace({ from: 1, steps: 2 });
      for (let step = 0; step < 5; step++) {
        trace.begin(step);
        const at = 100 * step;
        trace.saw("forward", at + 1, at + 10);
        trace.saw("encode", at + 12, at + 14, 0);
        trace.saw("wire", at + 14, at + 30, 0);
        trace.saw("wire", at + 15, at + 31, 1);
        trace.saw("backward", at + 10, at + 40);
        trace.saw("step", at, at + 50);
        expect(trace.isComplete(step, false)).toBe(step >= 2);
      }
      return writeTrace(trace, group, folder);
    });
    expect(files).toEqual([join(folder, "trace.json"), undefined]);
    const { traceEvents } = JSON.parse(readFileSync(files[0]!, "utf8")) as { traceEvents: TraceEvent[] };
    expectValid(traceEvents);
    const complete = traceEvents.filter(({ ph }) => ph === "X");
    expect(complete).toHaveLength(2 * 2 * 6);
    expect(new Set(complete.map(({ pid }) => pid))).toEqual(new Set([0, 1]));
    expect(new Set(complete.map(({ args }) => args["step"]))).toEqual(new Set([1, 2]));
    const backward = complete.find(({ name, pid }) => name === "backward" && pid === 0)!;
    expect(backward.dur).toBeCloseTo(30_000, 3);
    expect(complete.filter(({ name }) => name === "wire").map(({ tid }) => tid)).toContain(3);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("leaves the file of an earlier process of the run", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-trace-"));
  try {
    const write = async (step: number) => {
      const [file] = await onRanks(1, async (group) => {
        const trace = new Trace({ from: step, steps: 1 });
        trace.begin(step);
        trace.saw("step", 0, 1);
        return writeTrace(trace, group, folder);
      });
      return file!;
    };
    const files = [await write(5), await write(5), await write(9)];
    expect(files).toEqual(["trace.json", "trace-2.json", "trace-3.json"].map((name) => join(folder, name)));
    const steps = files.map((file) => {
      const { traceEvents } = JSON.parse(readFileSync(file, "utf8")) as { traceEvents: TraceEvent[] };
      return traceEvents.find(({ ph }) => ph === "X")!.name;
    });
    expect(steps).toEqual(["step 5", "step 5", "step 9"]);
    for (const file of files) expect(isTraceFile(basename(file))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("shows a real step of several buckets that leave while backward runs: encode, wire and decode of each, in order", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-trace-"));
  try {
    const [file] = await onRanks(2, (group) =>
      scope(async () => {
        const layers = new Sequential(...Array.from({ length: 4 }, () => new Linear(64, 64)));
        const options = { algorithm: lionCub(), overlap: "on", bucket: 4096, compareEvery: 0 } as const;
        await using optimizer = new Optimizer(new Arena(layers), group, options);
        const trace = new Trace({ from: 0, steps: 2 });
        const meter = new StepMeter(trace);
        optimizer.watch = meter;
        for (let step = 0; step < 2; step++) {
          meter.begin(step);
          const x = await meter.time("data", () => fromTypedArray(new Float32Array(256).fill(1), [4, 64]));
          const loss = await meter.time("forward", () => layers.forward(x).square().mean());
          await optimizer.begin({ lr: 0.1 });
          await meter.time("backward", () => loss.backward());
          await optimizer.step({ lr: 0.1 });
          meter.end();
        }
        return writeTrace(trace, group, folder);
      }),
    );
    const { traceEvents } = JSON.parse(readFileSync(file!, "utf8")) as { traceEvents: TraceEvent[] };
    expectValid(traceEvents);
    for (const pid of [0, 1])
      for (const step of [0, 1])
        for (const bucket of [0, 1, 2, 3]) {
          const of = (part: string) =>
            traceEvents.find(
              ({ name, pid: rank, args }) =>
                name === part && rank === pid && args["step"] === step && args["bucket"] === bucket,
            )!;
          expect(of("encode").ts).toBeLessThan(of("wire").ts!);
          expect(of("wire").ts).toBeLessThan(of("decode").ts!);
        }
    expect(traceEvents.filter(({ name }) => /^step \d$/.test(name))).toHaveLength(4);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

it("names the rank that announces a trace of an impossible length, and takes no memory for it", async () => {
  const [honest, liar] = loopback(2) as [ReturnType<typeof loopback>[0], ReturnType<typeof loopback>[0]];
  const lied = clockOffsets(liar).then(() => liar.allGather([Float64Array.of(0), Float64Array.of(1e15)]));
  await expect(writeTrace(new Trace({ from: 0, steps: 1 }), honest, "/nowhere")).rejects.toThrow(
    "rank 1 announced a text of 1000000000000000 bytes",
  );
  await lied;
});
