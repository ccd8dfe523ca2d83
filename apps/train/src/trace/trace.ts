/**
 * What happened when, in some steps of a run: every rank keeps the parts of its steps in memory, and rank 0 puts them on its clock and into
 * one file when the last of these steps has ended, trace.json in the run's folder; of a process that goes on with the run trace-2.json, and so on.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { atomicWriteText } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import type { StepPart } from "../measures/step-meter.ts";
import type { Recipe } from "../recipe.ts";
import { chromeTrace } from "./chrome-trace.ts";
import { clockOffsets } from "./clock.ts";

/** The name of the file of each process that has traced a run, counted from 1. */
const traceFile = (process: number) => (process === 1 ? "trace.json" : `trace-${process}.json`);
export const isTraceFile = (name: string): boolean => /^trace(-\d+)?\.json$/.test(name);

export interface TracedPart {
  readonly part: StepPart | "step";
  readonly began: number; // milliseconds of this process's performance.now()
  readonly ended: number;
  readonly step: number;
  readonly bucket?: number;
}

export class Trace {
  readonly #from: number;
  readonly #to: number; // the first step that is not traced
  #parts: TracedPart[] = [];
  #step = -1;

  /** The steps [from, from + steps). */
  constructor({ from, steps }: { from: number; steps: number }) {
    this.#from = from;
    this.#to = from + steps;
  }

  /** Parts belong to this step from now on. */
  begin(step: number): void {
    this.#step = step;
  }

  saw(part: TracedPart["part"], began: number, ended: number, bucket?: number): void {
    const step = this.#step;
    if (step < this.#from || step >= this.#to) return;
    this.#parts.push({ part, began, ended, step, ...(bucket !== undefined && { bucket }) });
  }

  /** Whether `step` was the last one of the trace, or the run ends after it. */
  isComplete(step: number, isLast: boolean): boolean {
    return this.#parts.length > 0 && (step + 1 >= this.#to || isLast);
  }

  /** The parts so far, which it forgets. */
  take(): readonly TracedPart[] {
    const parts = this.#parts;
    this.#parts = [];
    return parts;
  }
}

/** The trace that a recipe asks for, in a process that begins at step `begin`; undefined for none. It ends with the run at the latest. */
export function traceOf({ trace: { from, steps }, steps: end }: Recipe, begin: number): Trace | undefined {
  return steps === 0 ? undefined : new Trace({ from: Math.max(begin, Math.min(begin + from, end - steps)), steps });
}

/**
 * Writes the traces of all ranks to a new file in the folder; all ranks call it, between two steps. Sent by a rank, to rank 0: its trace as
 * JSON, about 100 bytes for each part, and the pings of clock.ts. Resolves to the file on rank 0.
 */
export async function writeTrace(trace: Trace, group: Group, folder: string): Promise<string | undefined> {
  const offsets = await clockOffsets(group);
  const mine = new TextEncoder().encode(JSON.stringify(trace.take()));
  const lengths = Array.from({ length: group.size }, () => Float64Array.of(mine.length));
  await group.allGather(lengths);
  const texts = lengths.map(([length]) => new Uint8Array(length!));
  await group.gather(mine, 0, group.rank === 0 ? texts : undefined);
  if (group.rank !== 0) return undefined;
  const ranks = texts.map((text, rank) =>
    (JSON.parse(new TextDecoder().decode(text)) as TracedPart[]).map((part) => ({
      ...part,
      began: part.began - offsets[rank]!,
      ended: part.ended - offsets[rank]!,
    })),
  );
  const origin = Math.min(
    ...ranks.map((parts) => parts.reduce((first, { began }) => Math.min(first, began), Number.POSITIVE_INFINITY)),
  );
  let process = 1;
  while (existsSync(join(folder, traceFile(process)))) process++;
  const file = join(folder, traceFile(process));
  await atomicWriteText(file, JSON.stringify(chromeTrace(ranks, origin)));
  return file;
}
