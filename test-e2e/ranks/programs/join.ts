/** Joins, meets the others once, and leaves; tells what went wrong otherwise, and `first` before all that. */
import { joinWorld } from "@terse/collectives";
import { tell, tellError } from "./tell.ts";

const [deadlineSeconds = "60", config = "", first = ""] = process.argv.slice(2);
if (first) tell({ [first]: true });
try {
  await using group = await joinWorld({ deadlineSeconds: Number(deadlineSeconds), config });
  await group.barrier();
  tell({ joined: group.rank, of: group.size });
} catch (error) {
  tellError(error);
  process.exitCode = 1;
}
