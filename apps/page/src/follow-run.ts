/**
 * Shows the run of the training that has started this process, until the training ends: `follow-run.ts FOLDER HOST
 * PORT`. It tells the training, over the channel between them, which address to open, or why there is no page.
 */
import { setPriority } from "node:os";
import { tokenVariable } from "./access.ts";
import type { PageNews } from "./open-page.ts";
import { openRuns } from "./run-folder.ts";
import { servePage } from "./server.ts";

const [folder = "", host = "", port = ""] = process.argv.slice(2);
const ended = new Promise((resolve) => process.once("disconnect", resolve));
// A terminal sends its signals to this process too; it shows the last save of the training, and then ends with it.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
setPriority(10); // the ranks go first

const say = (news: PageNews) => process.connected && process.send!(news);
try {
  await using server = await servePage(
    openRuns([folder], () => process.connected),
    { host, port: Number(port) },
    process.env[tokenVariable] || undefined,
  );
  say({ url: server.url });
  await ended;
} catch (error) {
  say({ problem: (error as Error).message });
  process.disconnect?.();
}
