/**
 * Traces of ranks as a file that Perfetto and chrome://tracing open, in Google's "Trace Event Format", JSON object
 * form. Each rank is a process. Its threads:
 *
 *   steps       step, and in it data, forward and backward
 *   messages    encode, decode and update: what the rank computes for its messages. Backward, on its own thread, may
 *               run at the same time
 *   wire 1 …    collectives; each lane has one at a time
 */
import type { TracedPart } from "./trace.ts";

/** An event with a beginning and an end ("X"), or the name of a process or thread ("M"). Times are microseconds. */
export interface TraceEvent {
  readonly name: string;
  readonly ph: "X" | "M";
  readonly pid: number;
  readonly tid: number;
  readonly ts?: number;
  readonly dur?: number;
  readonly cat?: string;
  readonly args: Readonly<Record<string, number | string>>;
}

const lanes = { steps: 0, messages: 1, wire: 2 } as const;

/** `began` and `ended` of the parts are milliseconds on one clock, of which `origin` is 0. */
export function chromeTrace(
  ranks: readonly (readonly TracedPart[])[],
  origin: number,
): { displayTimeUnit: "ms"; traceEvents: TraceEvent[] } {
  return {
    displayTimeUnit: "ms",
    traceEvents: ranks.flatMap((parts, rank) => eventsOf(parts, rank, ranks.length, origin)),
  };
}

function eventsOf(parts: readonly TracedPart[], rank: number, size: number, origin: number): TraceEvent[] {
  const wires = lanesOf(parts.filter(({ part }) => part === "wire"));
  const event = ({ part, began, ended, step, bucket }: TracedPart, tid: number): TraceEvent => ({
    name: part === "step" ? `step ${step}` : part,
    cat: tid === lanes.steps ? "step" : tid === lanes.messages ? "message" : "wire",
    ph: "X",
    ts: 1000 * (began - origin),
    dur: 1000 * (ended - began),
    pid: rank,
    tid,
    args: bucket === undefined ? { step } : { step, bucket },
  });
  const named = (name: string, tid: number, args: TraceEvent["args"]): TraceEvent => ({
    name,
    ph: "M",
    pid: rank,
    tid,
    args,
  });
  return [
    named("process_name", 0, { name: `rank ${rank} of ${size}` }),
    named("process_sort_index", 0, { sort_index: rank }),
    named("thread_name", lanes.steps, { name: "steps" }),
    named("thread_name", lanes.messages, { name: "messages" }),
    ...wires.map((_, lane) => named("thread_name", lanes.wire + lane, { name: `wire ${lane + 1}` })),
    ...parts.flatMap((part) => {
      if (part.part === "wire") return [];
      const ofStep = ["step", "data", "forward", "backward"].includes(part.part);
      return [event(part, ofStep ? lanes.steps : lanes.messages)];
    }),
    ...wires.flatMap((lane, i) => lane.map((part) => event(part, lanes.wire + i))),
  ];
}

/** As few lanes as the parts that are under way at once need. */
export function lanesOf(parts: readonly TracedPart[]): TracedPart[][] {
  const found: TracedPart[][] = [];
  for (const part of parts.toSorted((a, b) => a.began - b.began)) {
    const free = found.find((lane) => lane.at(-1)!.ended <= part.began);
    if (free) free.push(part);
    else found.push([part]);
  }
  return found;
}
