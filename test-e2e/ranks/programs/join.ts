/** Reports `first`, if given. Then it joins, runs a barrier and leaves, and reports that, or the error. */
import { joinWorld } from "@terse/collectives";
import { report, reportError } from "./report.ts";

const [deadlineSeconds = "60", config = "", first = ""] = process.argv.slice(2);
if (first) report({ [first]: true });
try {
  await using group = await joinWorld({ deadlineSeconds: Number(deadlineSeconds), config });
  await group.barrier();
  report({ joined: group.rank, of: group.size });
} catch (error) {
  reportError(error);
  process.exitCode = 1;
}
