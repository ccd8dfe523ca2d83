/** Writes a picture of the page of some runs: `picture.ts FILE.png RUN…`. docs/page.png is one. */
import { writeFileSync } from "node:fs";
import { openRuns } from "../run-folder.ts";
import { servePage } from "../server.ts";
import { Browser } from "./browser.ts";

const [file = "", ...runs] = process.argv.slice(2);
await using server = await servePage(openRuns(runs), { host: "127.0.0.1", port: 0 });
await using browser = await Browser.start();
await browser.view({ width: 1200, height: 1010 });
await browser.open(server.url);
await browser.until(
  `document.querySelectorAll(".run .facts").length === ${runs.length} && document.querySelector("canvas")`,
);
await browser.evaluate("new Promise((resolve) => setTimeout(resolve, 1500))"); // all lines have come
writeFileSync(file, await browser.picture({ whole: false }));
