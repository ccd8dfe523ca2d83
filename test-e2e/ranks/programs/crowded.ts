/** Joins when `left` file descriptors are left to it, or tells why it could not. */
import { closeSync, openSync } from "node:fs";
import { joinWorld } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import { tell, tellError } from "./tell.ts";

const [left = "0", crowded = "1"] = process.argv.slice(2);
collectives(); // a library that does not open is another matter
if (process.env["RANK"] === crowded) {
  const taken: number[] = [];
  try {
    for (;;) taken.push(openSync("/dev/null", "r"));
  } catch {
    for (const fd of taken.splice(0, Number(left))) closeSync(fd);
  }
}
try {
  await using group = await joinWorld({ deadlineSeconds: 6 });
  await group.barrier();
  tell({ joined: true });
} catch (error) {
  tellError(error);
  process.exitCode = 1;
}
