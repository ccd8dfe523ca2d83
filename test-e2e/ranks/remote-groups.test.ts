import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { nodeFlags } from "../../tools/programs.ts";
import { RemoteRanks } from "./remote-groups.ts";

it("calls of a rank whose process ends fail at once, those under way and those after it", async () => {
  await using ranks = await RemoteRanks.listen();
  const program = fileURLToPath(new URL("programs/remote-rank.ts", import.meta.url));
  const children = [0, 1].map(() => spawn(process.execPath, [...nodeFlags, program, ranks.port]));
  const groups = await (await ranks.connected(2))("tcp");
  const underWay = groups[0]!.barrier();
  for (const child of children) child.kill("SIGKILL");
  await expect(underWay).rejects.toThrow("the process of a remote rank has ended");
  await expect(groups[0]!.barrier()).rejects.toThrow("the process of a remote rank has ended");
});
