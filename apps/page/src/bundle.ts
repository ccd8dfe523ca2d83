/** What a browser loads: one page, one script and one style sheet, built from src/client when the server starts. */
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "esbuild";

export interface PageFile {
  readonly type: string;
  readonly body: Buffer;
  readonly gzip: Buffer;
  readonly etag: string;
}

/** The files that a browser loads, by their paths. */
export async function bundle(): Promise<ReadonlyMap<string, PageFile>> {
  const at = (name: string) => fileURLToPath(new URL(`client/${name}`, import.meta.url));
  const { outputFiles } = await build({
    entryPoints: ["main.ts", "page.css"].map((name) => ({ in: at(name), out: "page" })),
    bundle: true,
    minify: true,
    format: "esm",
    target: "es2023",
    platform: "browser",
    outdir: "/",
    write: false,
    logLevel: "silent",
  });
  const script = outputFiles.find(({ path }) => path.endsWith(".js"))!;
  const style = outputFiles.find(({ path }) => path.endsWith(".css"))!;
  return new Map([
    ["/", pageFile("text/html; charset=utf-8", await readFile(at("index.html")))],
    ["/page.js", pageFile("text/javascript; charset=utf-8", Buffer.from(script.contents))],
    ["/page.css", pageFile("text/css; charset=utf-8", Buffer.from(style.contents))],
  ]);
}

function pageFile(type: string, body: Buffer): PageFile {
  return {
    type,
    body,
    gzip: gzipSync(body),
    etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 20)}"`,
  };
}
