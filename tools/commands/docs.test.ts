import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
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
