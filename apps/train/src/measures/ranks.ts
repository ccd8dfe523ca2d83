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

/** On rank 0 the mean loss and the keys for metrics.jsonl; undefined on the others. */
export async function gatherRanks(group: Group, { loss, compute, exposed }: RankMeasures) {
  const mine = Float64Array.of(loss, compute, exposed, process.memoryUsage.rss());
  const ranks = Array.from({ length: group.size }, () => new Float64Array(mine.length));
  await group.gather(mine, 0, group.rank === 0 ? ranks : undefined);
  if (group.rank !== 0) return undefined;
  const column = (i: number) => ranks.map((of) => of[i]!);
  const computing = column(1);
  const most = Math.max(...computing);
  return {
    loss: column(0).reduce((sum, each) => sum + each, 0) / group.size,
    measured: {
      "ranks/compute_seconds": computing,
      "ranks/exposed_seconds": column(2),
      "ranks/resident_bytes": column(3),
      skew_seconds: most - Math.min(...computing),
      slowest_rank: computing.indexOf(most),
    },
  };
}
