import type { Silence } from "./outage.ts";
import type { Peer } from "./peer.ts";

/** Looks at regular intervals for ranks whose heartbeats are not heard. */
export function watchSilence(
  peers: ReadonlyMap<number, Peer>,
  silence: Silence,
  lost: (rank: number, why: string) => void,
): NodeJS.Timeout {
  const judge = () => {
    const now = performance.now();
    for (const [rank, peer] of peers)
      if (peer.heartbeat && !peer.left && now - peer.heardAt > 1000 * silence.seconds)
        lost(rank, `no heartbeat for ${silence.seconds} s; its process is stopped, or its machine is not reachable`);
  };
  let before = performance.now();
  return setInterval(
    () => {
      const now = performance.now();
      // While this process was stopped for long, the ranks perhaps were too.
      if (now - before > 500 * silence.seconds) for (const peer of peers.values()) peer.heardAt = now;
      before = now;
      setImmediate(judge); // what the ranks sent while this process was busy is read first
    },
    Math.min(1000, silence.heartbeatMs),
  );
}
