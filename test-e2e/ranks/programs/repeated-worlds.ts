/**
 * Joins and leaves world after world, all ranks in this process. Reports how many descriptors, threads and bytes the
 * process holds.
 */
import { readdirSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { joinWorld, serveRendezvous } from "@terse/collectives";
import { report } from "./report.ts";

const [rounds = "50", manner = "close"] = process.argv.slice(2);
const ranks = [0, 1, 2];
const count = (folder: string) => readdirSync(`/proc/self/${folder}`).length;

for (let round = 0; round < Number(rounds); round++) {
  await using server = await serveRendezvous({ size: ranks.length, token: "t" });
  const groups = await Promise.all(
    ranks.map((rank) =>
      joinWorld({
        env: {
          TERSE_ENGINE: process.env["TERSE_ENGINE"],
          RANK: `${rank}`,
          WORLD_SIZE: `${ranks.length}`,
          TERSE_TOKEN: "t",
          TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
        },
      }),
    ),
  );
  const halves = await Promise.all(groups.map((group) => group.split(group.rank % 2)));
  await Promise.all(
    groups.map(async (group, rank) => {
      await group.allReduce(new Float32Array(100_000));
      await halves[rank]!.allReduce(new Float32Array(10));
      if (rank > 0) await group.send(new Float32Array(3), 0);
      else for (const from of [1, 2]) await group.recv(new Float32Array(3), from);
    }),
  );
  if (manner === "fail") {
    const pending = groups.map((group) => group.allReduce(new Float32Array(group.rank === 1 ? 100_000 : 100_001)));
    const outcomes = await Promise.allSettled(pending);
    if (outcomes.some(({ status }) => status === "fulfilled")) throw new Error("the sizes differ, and no rank noticed");
  }
  if (manner === "cancel") {
    const cancel = new AbortController();
    const cancelled = groups[1]!.recv(new Float32Array(3), 0, { signal: cancel.signal });
    const pending = groups.map((group) =>
      group.rank === 1
        ? group.barrier()
        : group.allReduce(new Float32Array(3_000_000), "sum", { signal: group.rank === 0 ? cancel.signal : undefined }),
    );
    cancel.abort();
    const outcomes = await Promise.allSettled([cancelled, ...pending]);
    if (outcomes.some(({ status }) => status === "fulfilled"))
      throw new Error("an operation was cancelled, and no rank noticed");
  }
  await Promise.all([...halves, ...groups].map((group) => group!.close()));
  await server.close();
  if (round % 5 === 4) {
    await sleep(20); // sockets close in a later iteration of the event loop
    globalThis.gc?.();
    await sleep(50); // arrays are freed on another thread
    globalThis.gc?.();
    report({ round, fd: count("fd"), task: count("task"), rss: process.memoryUsage.rss() });
  }
}
