/**
 * The trace of a run: rank 0 puts the parts of all ranks on its clock and into one file when the last of the traced
 * steps has ended, trace.json in the run's folder; of a process that goes on with the run trace-2.json, and so on.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { atomicWriteText } from "@terse/checkpoint";
import type { Group } from "@terse/collectives";
import { gatherLengths } from "../gather-texts.ts";
import { chromeTrace } from "./chrome-trace.ts";
import { clockOffsets } from "./clock.ts";
import type { Trace, TracedPart } from "./trace.ts";

const mostBytes = 1 << 28; // of a rank's trace

/** The name of the file of each process that has traced a run, counted from 1. */
const traceFile = (process: number) => (process === 1 ? "trace.json" : `trace-${process}.json`);
export const isTraceFile = (name: string): boolean => /^trace(-\d+)?\.json$/.test(name);

/**
 * Writes the traces of all ranks to a new file in the folder; all ranks call it, between two steps. Sent by a rank, to
 * rank 0: its trace as JSON, about 100 bytes for each part, and the pings of clock.ts. Resolves to the file on rank 0.
 */
export async function writeTrace(trace: Trace, group: Group, folder: string): Promise<string | undefined> {
  const offsets = await clockOffsets(group);
  const mine = new TextEncoder().encode(JSON.stringify(trace.take()));
  const lengths = await gatherLengths(group, mine.length, mostBytes);
  const texts = group.rank === 0 ? lengths.map((length) => new Uint8Array(length)) : undefined;
  await group.gather(mine, 0, texts);
  if (!texts) return undefined;
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
