/** Writes a picture of the page of some runs: `picture.ts FILE.png RUN…`. docs/page.png is one. */
import { patience, startBrowser, until } from "../../../../tools/testing/browser.ts";
import { openRuns } from "../run-folder.ts";
import { servePage } from "../server.ts";

const [file = "", ...runs] = process.argv.slice(2);
await using server = await servePage(openRuns(runs), { host: "127.0.0.1", port: 0 });
const browser = await startBrowser();
try {
  const page = await browser.newPage({ viewport: { width: 1200, height: 1010 }, locale: "en-US" });
  page.setDefaultTimeout(patience);
  await page.goto(server.url, { waitUntil: "commit" }); // a page that follows a run never ends loading
  await until(
    page,
    `document.querySelectorAll(".run .facts").length === ${runs.length} && document.querySelector("canvas")`,
  );
  await page.waitForTimeout(1500); // all lines have come
  await page.screenshot({ path: file });
} finally {
  await browser.close();
}
