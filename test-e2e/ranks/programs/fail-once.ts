/** Rank 1 ends with an error in torchrun's first attempt; the next attempt is well. */
import { joinWorld } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

const attempt = process.env["TORCHELASTIC_RESTART_COUNT"] ?? "";
const group = await joinWorld();
await group.barrier();
if (attempt === "0" && group.rank === 1) process.exit(3);
try {
  const x = Float32Array.of(1);
  await group.allReduce(x);
  tell({ attempt, rank: group.rank, sum: x[0] });
} catch (error) {
  tellError(error);
  process.exitCode = 1;
}
await group.close();
