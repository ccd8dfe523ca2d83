/**
 * A few megabytes of real text that every checkout has: the TypeScript declarations that the installed packages brought.
 *
 * The same lockfile gives the same bytes on every machine. So nothing depends on what names the package manager gives its
 * folders, on packages that an earlier lockfile left behind (only what the root's links reach counts), or on the platform
 * (`@typescript/typescript-linux-x64` and `…-darwin-arm64` bring the same declarations): files are ordered by their path
 * inside their package and then by their content, and equal contents count once.
 */
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readdir, readFile, realpath } from "node:fs/promises";
import { basename, dirname, join, sep } from "node:path";
import { DataError } from "./data-error.ts";
import { byCodeUnit } from "./text-bytes.ts";

export interface DeclarationOptions {
  /** The most bytes to take; a file that would pass it is left out. */
  readonly limitBytes?: number;
}

// `.d.cts` is left out: it nearly always repeats the `.d.mts` beside it.
const declaration = /\.d\.m?ts$/;

/**
 * The declarations under `root`/node_modules, joined: 8 MiB unless told otherwise. Reads the layouts of pnpm (links into
 * `.pnpm`) and of npm (nested folders). Throws `DataError` where nothing is installed.
 */
export async function installedDeclarations(
  root: string = installationRoot(),
  { limitBytes = 8 << 20 }: DeclarationOptions = {},
): Promise<Uint8Array> {
  const packages = new Set<string>();
  await reach(join(root, "node_modules"), packages);

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

/** The checkout that this file belongs to, or the folder of the project that installed this package. */
export function installationRoot(): string {
  const here = import.meta.dirname;
  const installed = here.indexOf(`${sep}node_modules${sep}`);
  if (installed >= 0) return here.slice(0, installed);
  for (let folder = here; folder !== dirname(folder); folder = dirname(folder))
    if (existsSync(join(folder, "pnpm-workspace.yaml"))) return folder;
  return process.cwd();
}

/** Every package that the links and folders of one node_modules lead to, and theirs in turn. */
async function reach(modules: string, packages: Set<string>): Promise<void> {
  for (const name of await names(modules)) {
    if (name.startsWith("@")) {
      await reach(join(modules, name), packages);
      continue;
    }
    const real = await realpath(join(modules, name)).catch(() => undefined); // a link to nothing reaches nothing
    // A link out of node_modules is one of the workspace's own packages, whose declarations change as one builds.
    if (real === undefined || !real.includes(`${sep}node_modules${sep}`) || packages.has(real)) continue;
    packages.add(real);
    await reach(join(real, "node_modules"), packages);
    // pnpm puts what a package depends on beside it.
    const beside = basename(dirname(real)).startsWith("@") ? dirname(dirname(real)) : dirname(real);
    if (dirname(dirname(beside)).endsWith(`${sep}.pnpm`)) await reach(beside, packages);
  }
}

/** Whether other platforms install nothing in its place: fsevents is, `@typescript/typescript-linux-x64` is not. */
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
  const all = await readdir(folder).catch(() => []); // no folder, no packages
  return all.filter((name) => !name.startsWith("."));
}
