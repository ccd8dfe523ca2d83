/**
 * What rank 0 knows of every rank: its loss, and who waits for whom. A rank sends 32 bytes to rank 0 at each logged
 * step.
 */
import type { Group } from "@terse/collectives";

export interface RankMeasures {
  readonly loss: number;
  readonly compute: number; // seconds a step that it did not wait for messages
  readonly exposed: number; // seconds a step that it did
}

/** The mean loss of the ranks, and the keys for metrics.jsonl. */
export type MeasuredRanks = ReturnType<typeof measuredRanks>;

/** Of all ranks on rank 0; undefined on the others. */
export async function gatherRanks(group: Group, measures: RankMeasures): Promise<MeasuredRanks | undefined> {
  const mine = rowOf(measures);
  const ranks = Array.from({ length: group.size }, () => new Float64Array(mine.length));
  await group.gather(mine, 0, group.rank === 0 ? ranks : undefined);
  return group.rank === 0 ? measuredRanks(ranks) : undefined;
}

/** The numbers of a rank. */
export const rowOf = ({ loss, compute, exposed }: RankMeasures): Float64Array<ArrayBuffer> =>
  Float64Array.of(loss, compute, exposed, residentBytes());

/** NaN where the system does not say: without /proc, Node throws. */
function residentBytes(): number {
  try {
    return process.memoryUsage.rss();
  } catch {
    return Number.NaN;
  }
}

/** `rows`: of each rank, those of `rowOf` first. */
export function measuredRanks(rows: readonly Float64Array[]) {
  const column = (i: number) => rows.map((of) => of[i]!);
  const [computing, resident] = [column(1), column(3)];
  const most = Math.max(...computing);
  return {
    loss: column(0).reduce((sum, each) => sum + each, 0) / rows.length,
    measured: {
      "ranks/compute_seconds": computing,
      "ranks/exposed_seconds": column(2),
      ...(!resident.some(Number.isNaN) && { "ranks/resident_bytes": resident }),
      skew_seconds: most - Math.min(...computing),
      slowest_rank: computing.indexOf(most),
    },
  };
}
