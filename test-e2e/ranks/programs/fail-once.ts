/** Rank 1 exits with an error in torchrun's first attempt. The next attempt succeeds. */
import { joinWorld } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const attempt = process.env["TORCHELASTIC_RESTART_COUNT"] ?? "";
const group = await joinWorld();
await group.barrier();
if (attempt === "0" && group.rank === 1) process.exit(3);
try {
  const x = Float32Array.of(1);
  await group.allReduce(x);
  report({ attempt, rank: group.rank, sum: x[0] });
} catch (error) {
  reportError(error);
  process.exitCode = 1;
}
await group.close();
