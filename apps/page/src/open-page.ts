/** The page of a training, in a process of its own: the event loop of the rank that trains does nothing for it. */
import { spawn } from "node:child_process";
import { fileURLToPath } from "node:url";
import { withoutToken } from "./access.ts";
import { type Address, urlOf } from "./address.ts";

/** What the page's process says when it has started. */
export type PageNews = { readonly url: string } | { readonly problem: string };

/**
 * Starts to show the run in `folder`. `journal` gets one line: the address, or why there is no page. Training goes on
 * in either case. Where others may read the journal's file, the journal gets the address without its token, and `tell`
 * gets it with the token; `tell` returns whether it could show it.
 */
export function openPage(
  folder: string,
  at: Address,
  journal: { note(line: string): void },
  tell: (url: string) => boolean = () => false,
): Disposable {
  const { TERSE_TOKEN, ...env } = process.env; // the ranks' secret
  const main = fileURLToPath(new URL("follow-run.ts", import.meta.url));
  const child = spawn(process.execPath, [...process.execArgv, main, folder, at.host, String(at.port)], {
    env,
    stdio: ["ignore", "ignore", "ignore", "ipc"],
  });
  let heard = false;
  const hear = (line: string) => {
    if (!heard) journal.note(line);
    heard = true;
  };
  const notShown = (why: string) => hear(`the page is not shown: ${why}; ./terse page ${folder} shows this run, too`);
  child.once("message", (news: PageNews) => {
    if ("url" in news) hear(`page ${tell(news.url) ? withoutToken(news.url) : news.url}`);
    else notShown(news.problem);
  });
  child.once("error", ({ message }) => notShown(message));
  child.once("exit", () => notShown(`its process ended before it listened on ${urlOf(at)}`));
  child.unref();
  child.channel?.unref();
  return {
    [Symbol.dispose]() {
      heard = true;
      if (child.connected) child.disconnect();
    },
  };
}
