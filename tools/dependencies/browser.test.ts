import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { browserPath, startBrowser, whyNoBrowser } from "../testing/browser.ts";
import { scratchFolder } from "../testing/scratch-folder.ts";
import { toolchain } from "../toolchain.ts";

/** Runs a program where there is no font of this machine, which others go on to see. */
const withoutFonts = `set -e
for folder in /usr/share/fonts /usr/local/share/fonts /etc/fonts; do
  [ ! -d $folder ] || mount -t tmpfs none $folder
done
export HOME=/nonexistent
exec "$0" "$@"`;
const inNamespace = ["--user", "--map-root-user", "--mount", "sh", "-c", withoutFonts];

const obstacle = !browserPath?.startsWith(toolchain)
  ? whyNoBrowser || " (skipped: this machine's own Chromium is used, with its own fonts)"
  : spawnSync("unshare", [...inNamespace, "true"]).status !== 0
    ? " (skipped: this user may make no mount namespace)"
    : "";

it.skipIf(obstacle)(`draws text on a machine without any font${obstacle}`, async () => {
  const program = join(scratchFolder(), "chromium-without-fonts");
  const words = ["unshare", ...inNamespace, browserPath!].map((word) => `'${word.replaceAll("'", `'\\''`)}'`);
  writeFileSync(program, `#!/bin/sh\nexec ${words.join(" ")} "$@"\n`, { mode: 0o755 });
  const browser = await startBrowser({ program });
  try {
    const page = await browser.newPage();
    await page.setContent("<span>text</span>");
    expect(await page.evaluate("document.querySelector('span').getBoundingClientRect().width")).toBeGreaterThan(10);
    expect((await page.screenshot()).length).toBeGreaterThan(0);
  } finally {
    await browser.close();
  }
});
