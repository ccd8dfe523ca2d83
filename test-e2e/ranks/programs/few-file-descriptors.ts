/**
 * Joins. The rank of the second argument has only `left` file descriptors for it. Reports the error, if there is one.
 */
import { closeSync, openSync } from "node:fs";
import { joinWorld } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { report, reportError } from "./report.ts";

const [left = "0", affected = "1"] = process.argv.slice(2);
collectives(); // the native library must be open before the descriptors run out
if (process.env["RANK"] === affected) {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    for (const fd of taken.splice(0, Number(left))) closeSync(fd);
  }
}
try {
  await using group = await joinWorld({ deadlineSeconds: 10 });
  await group.barrier();
  report({ joined: true });
} catch (error) {
  reportError(error);
  process.exitCode = 1;
}
