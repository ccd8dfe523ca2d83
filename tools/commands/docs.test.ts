import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { browserPath, patience, startBrowser, whyNoBrowser } from "../testing/browser.ts";
import { mendLinks } from "./docs.ts";

const site = mkdtempSync(join(tmpdir(), "terse-docs-"));
afterAll(() => rmSync(site, { recursive: true }));

it("leaves no link to a folder of sources, which a site does not have", () => {
  mkdirSync(join(site, "media"));
  mkdirSync(join(site, "modules"));
  writeFileSync(join(site, "media", "sign.c"), "");
  const page = join(site, "modules", "codecs.html");
  writeFileSync(
    page,
    '<a href="../media/engines"><code>engines/</code></a> <a href="../media/sign.c">C</a> <a href="../#setup" class="x">setup</a> <a href="https://a.org/media/b">b</a>',
  );
  mendLinks(page);
  expect(readFileSync(page, "utf8")).toBe(
    '<code>engines/</code> <a href="../media/sign.c">C</a> <a href="../index.html#setup" class="x">setup</a> <a href="https://a.org/media/b">b</a>',
  );
});

it.skipIf(!browserPath)(`fits a phone, with long names, lines of code and tables${whyNoBrowser}`, async () => {
  const { customCss } = JSON.parse(readFileSync(new URL("../../docs/typedoc.json", import.meta.url), "utf8"));
  const css = readFileSync(new URL(`../../docs/${customCss}`, import.meta.url), "utf8");
  const long = "packages/codecs/src/codecs/bf16/README".repeat(3);
  // As TypeDoc marks it up.
  const content = `<div class="container container-main"><div class="col-content"><h1>${long}<code class="tsd-tag">Const</code></h1>
    <div class="tsd-signature">${long}: <span class="tsd-signature-type">"${long}"</span></div>
    <dl class="tsd-member-summaries"><dt class="tsd-member-summary"><span style="display: inline-flex">${long}</span></dt></dl>
    <div class="tsd-typography"><pre><code>./terse train --data my/text ${"x".repeat(90)}</code></pre>
    <table><tr>${`<td>${"word".repeat(5)}</td>`.repeat(9)}</tr></table><p>${long}</p></div></div></div>`;
  const browser = await startBrowser();
  try {
    const widths: number[] = [];
    for (const style of ["", css]) {
      const page = await browser.newPage({ viewport: { width: 390, height: 844 }, isMobile: true });
      page.setDefaultTimeout(patience);
      await page.setContent(
        `<!doctype html><meta name="viewport" content="width=device-width"><style>.container-main { display: grid } ${style}</style>${content}`,
      );
      widths.push(await page.evaluate("document.documentElement.scrollWidth"));
    }
    expect(widths[0]).toBeGreaterThan(390);
    expect(widths[1]).toBe(390);
  } finally {
    await browser.close();
  }
});
