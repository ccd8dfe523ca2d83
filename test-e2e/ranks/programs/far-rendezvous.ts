/**
 * Two ranks reach the rendezvous at 10.9.0.2, far away, and are idle for longer than a silent rank may be. Reports what
 * they compute afterwards.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { answerHeartbeats, joinWorld, serveRendezvous } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const server = await serveRendezvous({ size: 2, token: "t", host: "10.9.0.1", answers: answerHeartbeats });
const env = { TERSE_TOKEN: "t", TERSE_RENDEZVOUS: `10.9.0.2:${server.port}`, WORLD_SIZE: "2", TERSE_ENGINE: "tcp" };
const groups = await Promise.all(["0", "1"].map((RANK) => joinWorld({ env: { ...env, RANK }, address: "10.9.0.1" })));
try {
  await sleep(15_000);
  const xs = groups.map(() => new Float32Array([1]));
  await Promise.all(groups.map((group, rank) => group.allReduce(xs[rank]!)));
  report({ sums: xs.map((x) => x[0]) });
} catch (error) {
  reportError(error);
}
await Promise.all(groups.map((group) => group.close()));
await server.close();
