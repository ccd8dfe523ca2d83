/**
 * How far each rank's clock is from rank 0's, measured by pings. Cristian 1989, "Probabilistic clock synchronization",
 * doi:10.1007/BF01784024
 *
 *   t₀  rank 0 sends          t₁  the rank answers with its time          t₂  rank 0 has the answer
 *   offset = t₁ − (t₀ + t₂) / 2, of the ping with the shortest t₂ − t₀; it is wrong by at most half of that
 */
import type { Group } from "@terse/collectives";

const pings = 16;

/**
 * Milliseconds that each rank's clock is ahead of rank 0's, by rank; on rank 0. All ranks call it. `now` is the clock.
 */
export async function clockOffsets(group: Group, now: () => number = () => performance.now()): Promise<number[]> {
  const { rank, size } = group;
  const time = new Float64Array(1);
  const offsets = new Array<number>(size).fill(0);
  for (let peer = 1; peer < size; peer++) {
    let shortest = Number.POSITIVE_INFINITY;
    for (let i = 0; i < pings; i++) {
      if (rank === 0) {
        const sent = now();
        await group.send(time, peer);
        await group.recv(time, peer);
        const answered = now();
        if (answered - sent >= shortest) continue;
        shortest = answered - sent;
        offsets[peer] = time[0]! - (sent + answered) / 2;
      } else if (rank === peer) {
        await group.recv(time, 0);
        time[0] = now();
        await group.send(time, 0);
      }
    }
  }
  return offsets;
}
