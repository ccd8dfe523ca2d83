import { mkdtempDisposableSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buildGlooPeer } from "../gloo-peer.ts";
import { type Measurement, median } from "../measurement.ts";
import { Peer } from "../peer.ts";

const kibi = 1024;
const mebi = 1024 * kibi;
const sizes = [kibi, 64 * kibi, mebi, 16 * mebi, 64 * mebi]; // of all parts together
const rounds = 7;

/** Gloo's collectives; each of its three all-reduce algorithms is compared with ours. */
const names = [
  ...["all-reduce-ring", "all-reduce-bcube", "all-reduce-halving-doubling", "all-gather", "all-gatherv"],
  ...["all-to-all", "all-to-allv", "broadcast", "gather", "scatter"],
];

/**
 * Measures our collectives over Gloo's point-to-point layer, Gloo's own collectives, and Gloo's own after a header is
 * compared, which Gloo needs because a size that differs ends the process. All run alternately on the loopback
 * interface, in C++, on Gloo's sockets.
 */
export async function* besideGloo(ranks: number): AsyncGenerator<Measurement> {
  using folder = mkdtempDisposableSync(join(tmpdir(), "terse-bench-gloo-"));
  const peers: Peer[] = [];
  try {
    const program = buildGlooPeer(folder.path);
    if (!program) return;
    const store = mkdtempSync(join(folder.path, "store-"));
    const start = (rank: number) => Peer.startProgram([program, `${rank}`, `${ranks}`, "127.0.0.1", store]);
    peers.push(...(await Promise.all(Array.from({ length: ranks }, (_, rank) => start(rank)))));
    for (const name of names) for (const bytes of sizes) yield* compared(peers, name, bytes);
    yield* compared(peers, "barrier", 0);
  } finally {
    await Promise.all(peers.map((peer) => peer[Symbol.asyncDispose]()));
  }
}

const sides = ["ours", "gloo", "checked"] as const;

async function* compared(peers: readonly Peer[], name: string, bytes: number): AsyncGenerator<Measurement> {
  const times = Math.max(2, Math.min(50, (16 * mebi) / Math.max(bytes, 1)));
  const taken = { ours: [] as number[], gloo: [] as number[], checked: [] as number[] };
  for (let round = -1; round < rounds; round++)
    for (const side of round % 2 === 0 ? sides : sides.toReversed()) {
      const request = `${side} ${name} ${bytes} ${round < 0 ? 1 : Math.floor(times)}`;
      const answers = await Promise.all(peers.map((peer) => peer.ask<{ milliseconds: number[] }>(request)));
      const slowest = answers[0]!.milliseconds.map((_, i) => Math.max(...answers.map((each) => each.milliseconds[i]!)));
      if (round >= 0) taken[side].push(median(slowest));
    }
  const size = bytes === 0 ? "" : ` ${bytes < mebi ? `${bytes / kibi} KiB` : `${bytes / mebi} MiB`}`;
  const what = `${name}${size} ×${peers.length} beside Gloo's`;
  const ratio = (side: "gloo" | "checked") => median(taken.ours.map((own, i) => taken[side][i]! / own));
  yield { case: what, metric: "time", value: median(taken.ours), unit: "ms" };
  yield { case: what, metric: "gloo_time", value: median(taken.gloo), unit: "ms" };
  yield { case: what, metric: "over_gloo", value: ratio("gloo"), unit: "ratio" };
  if (name !== "barrier") yield { case: what, metric: "over_checked_gloo", value: ratio("checked"), unit: "ratio" };
}
