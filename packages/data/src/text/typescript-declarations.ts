/**
 * A text of a few megabytes that needs no download: the TypeScript declarations of the installed packages.
 *
 * The same lockfile gives the same bytes on every machine. The text does not depend on the folder names of the package
 * manager, on packages left from an earlier lockfile (only packages that the root's links lead to are read), or on the
 * platform (`@typescript/typescript-linux-x64` and `…-darwin-arm64` have the same declarations). Files are ordered by
 * their path inside their package, then by their content. Files with equal content are taken once.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { DataError } from "../data-error.ts";
import { byCodeUnit } from "../files-at.ts";

/** Options of `typescriptDeclarations`. */
export interface DeclarationOptions {
  /** Maximum number of bytes; a file that would exceed it is skipped. */
  readonly limitBytes?: number;
}

// Without `.d.cts`, which nearly always repeats the `.d.mts` of the same name.
const declaration = /\.d\.m?ts$/;

/** As messages call this text. */
export const declarationsName = "the installed TypeScript declarations";

/**
 * The text of this installation, for data that names no path. Throws `DataError` for a tokenizer that does not read
 * bytes.
 */
export async function declarationsAsBytes(tokenizer: string): Promise<Uint8Array> {
  if (tokenizer !== "bytes")
    throw new DataError(
      `data.tokenizer is ${tokenizer}, and data.path names no text: give a file or folder of text, --data PATH. The text that needs no path is read as bytes.`,
    );
  return typescriptDeclarations(installationRoot());
}

/**
 * Joins the declarations under `root`/node_modules, by default up to 8 MiB. Supports the layouts of pnpm (links into
 * `.pnpm`) and npm (nested folders). Throws `DataError` where no package has declarations.
 */
export async function typescriptDeclarations(
  root: string = installationRoot(),
  { limitBytes = 8 << 20 }: DeclarationOptions = {},
): Promise<Uint8Array> {
  const packages = new Set<string>();
  await collectPackages(join(root, "node_modules"), packages);

  const contents = new Map<string, { path: string; bytes: Uint8Array }>(); // by SHA-256
  for (const folder of packages) {
    if (await isOfOnePlatform(folder)) continue;
    for (const path of await declarationsIn(folder, "")) {
      const bytes = await readFile(join(folder, path));
      const hash = createHash("sha256").update(bytes).digest("hex");
      const known = contents.get(hash);
      if (bytes.length > 0 && (!known || byCodeUnit(path, known.path) < 0)) contents.set(hash, { path, bytes });
    }
  }

  const ordered = [...contents].sort(([a, { path: p }], [b, { path: q }]) => byCodeUnit(p, q) || byCodeUnit(a, b));
  const taken: Uint8Array[] = [];
  let total = 0;
  for (const [, { bytes }] of ordered) {
    const ended = bytes.at(-1) === 10 ? bytes : Buffer.concat([bytes, Buffer.from("\n")]);
    if (total + ended.length > limitBytes) continue;
    taken.push(ended);
    total += ended.length;
  }
  if (total === 0)
    throw new DataError(
      `There are no TypeScript declarations under ${join(root, "node_modules")}; install the packages, or name a file or folder of text.`,
    );
  const text = new Uint8Array(total);
  let end = 0;
  for (const bytes of taken) {
    text.set(bytes, end);
    end += bytes.length;
  }
  return text;
}

/** The root of the checkout that contains this file, or of the project that installed this package. */
export function installationRoot(): string {
  const here = import.meta.dirname;
  const installed = here.indexOf(`${sep}node_modules${sep}`);
  if (installed >= 0) return here.slice(0, installed);
  for (let folder = here; folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, "pnpm-workspace.yaml"))) return folder;
  return process.cwd();
}

/** Adds the packages that the links and folders of one node_modules lead to, and their dependencies. */
async function collectPackages(modules: string, packages: Set<string>): Promise<void> {
  for (const name of await names(modules)) {
    if (name.startsWith("@")) {
      await collectPackages(join(modules, name), packages);
      continue;
    }
    const real = await realpath(join(modules, name)).catch(() => undefined); // skips a broken link
    // A link out of node_modules leads to a package of the workspace, whose declarations change with every build.
    if (real === undefined || !real.includes(`${sep}node_modules${sep}`) || packages.has(real)) continue;
    packages.add(real);
    await collectPackages(join(real, "node_modules"), packages);
    // pnpm puts a package's dependencies next to it.
    const siblings = basename(dirname(real)).startsWith("@") ? dirname(dirname(real)) : dirname(real);
    if (dirname(dirname(siblings)).endsWith(`${sep}.pnpm`)) await collectPackages(siblings, packages);
  }
}

/**
 * Whether a package exists on some platforms alone, as fsevents. Every platform has its
 * `@typescript/typescript-linux-x64`.
 */
async function isOfOnePlatform(folder: string): Promise<boolean> {
  const text = await readFile(join(folder, "package.json"), "utf8").catch(() => "{}");
  const { name = "", os, cpu } = JSON.parse(text) as { name?: string; os?: string[]; cpu?: string[] };
  return (os !== undefined || cpu !== undefined) && !name.includes(`${process.platform}-${process.arch}`);
}

async function declarationsIn(folder: string, inside: string): Promise<string[]> {
  const found: string[] = [];
  for (const entry of await readdir(join(folder, inside), { withFileTypes: true })) {
    const path = inside === "" ? entry.name : `${inside}/${entry.name}`;
    if (entry.isDirectory() && entry.name !== "node_modules") found.push(...(await declarationsIn(folder, path)));
    else if (entry.isFile() && declaration.test(entry.name)) found.push(path);
  }
  return found;
}

async function names(folder: string): Promise<string[]> {
  const all = await readdir(folder).catch(() => []); // the folder may not exist
  return all.filter((name) => !name.startsWith("."));
}
