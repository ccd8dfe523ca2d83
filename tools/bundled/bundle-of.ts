import { execFileSync } from "node:child_process";
import { closeSync, openSync, readSync, statSync } from "node:fs";
import { dirname, join, relative } from "node:path";

/** The root folder of the repository. This file imports nothing else: every program starts with it. */
export const root = dirname(dirname(import.meta.dirname));

/** The first line of a bundle: what it was made of. */
export interface Header {
  readonly root: string;
  readonly node: string; // version
  /** Files, from the root, and the state of each. */
  readonly inputs: readonly (readonly [file: string, stamp: string])[];
}

/** A string that changes whenever the file is written. */
export function stampOf(path: string): string {
  const { mtimeMs, size } = statSync(path);
  return `${mtimeMs} ${size}`;
}

/**
 * One file with all that a program of this repository imports. It is made again where a source has changed. Where that
 * is not possible the result is undefined, and the program runs from its sources.
 */
export function bundleOf(program: string): string | undefined {
  const file = relative(root, program);
  if (!/^\w(?!.*\bnode_modules\b).*\.ts$/.test(file)) return undefined; // of somebody else
  const bundle = join(root, "build", "programs", file.replaceAll("/", "-").replace(/\.ts$/, ".mjs"));
  if (isCurrent(bundle)) return bundle;
  try {
    const writer = join(import.meta.dirname, "write-bundle.ts");
    execFileSync(process.execPath, ["--no-warnings", writer, program, bundle], { stdio: "ignore" });
    return isCurrent(bundle) ? bundle : undefined;
  } catch {
    return undefined; // Node will say what is wrong with a source; a folder may not be writable
  }
}

function isCurrent(bundle: string): boolean {
  try {
    const header = headerOf(bundle);
    if (header.root !== root || header.node !== process.version) return false;
    return header.inputs.every(([file, stamp]) => stampOf(join(root, file)) === stamp);
  } catch {
    return false; // there is no bundle, or one of its sources is gone
  }
}

function headerOf(bundle: string): Header {
  const descriptor = openSync(bundle, "r");
  try {
    const bytes = Buffer.alloc(2 ** 18);
    const text = bytes.toString("utf8", "//".length, readSync(descriptor, bytes));
    return JSON.parse(text.slice(0, text.indexOf("\n"))) as Header;
  } finally {
    closeSync(descriptor);
  }
}
