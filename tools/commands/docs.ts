import { globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { installTypedoc } from "../dependencies/typedoc.ts";
import { StepFailed } from "../remedy.ts";
import type { Steps } from "../steps.ts";
import { root } from "../toolchain.ts";

/**
 * Makes a folder of pages with all documents and the types of all packages, which a browser opens as files. Returns its
 * first page.
 */
export async function docs(steps: Steps, env: Record<string, string>, out: string): Promise<string> {
  const typedoc = await steps.run("TypeDoc", "about 11 MB to fetch, 46 MB on disk", installTypedoc);
  await steps.run("documents", "about a minute", async (progress) => {
    const options = ["--options", join(root, "docs", "typedoc.json"), "--out", out];
    await progress.run(process.execPath, [typedoc, ...options], { cwd: root, env });
    for (const page of globSync("**/*.html", { cwd: out })) mendLinks(join(out, page));
  });
  return join(out, "index.html");
}

/**
 * Links to folders of sources, which the site lacks, become plain text; those to the folder of the first page name that
 * page.
 */
export function mendLinks(page: string): void {
  const isFile = (link: string) =>
    statSync(resolve(dirname(page), decodeURIComponent(link)), { throwIfNoEntry: false })?.isFile() ?? false;
  const text = readFileSync(page, "utf8");
  const mended = text
    .replaceAll('href="../#', 'href="../index.html#')
    .replace(/<a href="([^":#]*media\/[^"#]*)[^"]*"[^>]*>(.*?)<\/a>/gs, (whole, link, inner) =>
      isFile(link) ? whole : inner,
    );
  if (mended !== text) writeFileSync(page, mended);
}

/** The folder of the pages, from the arguments of `./terse docs`. */
export function docsFolder(args: readonly string[]): string {
  if (args.length > 1 || args[0]?.startsWith("-"))
    throw new StepFailed(`./terse docs takes one folder for the pages, and not ${args.join(" ")}.`);
  return resolve(args[0] ?? join(root, "build", "docs"));
}
