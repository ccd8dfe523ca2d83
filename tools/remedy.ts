import { existsSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname } from "node:path";
import { libtorchRange } from "./dependencies/versions.ts";

/** A step failed for a known reason; the message is one sentence that also says what to do. */
export class StepFailed extends Error {
  override name = "StepFailed";
}

/** Where a set-up writes. */
export interface Places {
  readonly toolchain: string;
  readonly checkout: string;
  /** The folder that a failed command ran in. */
  readonly cwd?: string | undefined;
}

/** A folder that cannot be written to. */
interface Place {
  readonly folder: string;
  /** What helps beside its owner or free space, as the end of a sentence. */
  readonly otherwise: string;
}

interface Cause {
  signs: RegExp;
  /** `at`: where the sign is in the output. */
  remedy: (output: string, at: number, places: Places) => string;
}

// The first match counts: a full disk or a missing network explains all other output.
const causes: Cause[] = [
  {
    signs: /ENOSPC|No space left on device|Disk quota exceeded|EDQUOT/i,
    remedy: (output, at, places) => {
      const { folder, otherwise } = placeOf(output, at, places);
      return `The disk that holds ${folder} is full${freeSpace(folder)}: free some space${otherwise}.`;
    },
  },
  {
    signs:
      /CERTIFICATE_VERIFY_FAILED|SELF_SIGNED_CERT|UNABLE_TO_(VERIFY_LEAF_SIGNATURE|GET_ISSUER_CERT)|unable to get (local )?issuer certificate|certificate verify failed/i,
    remedy: () =>
      "The certificate of the package registry is not trusted here: name your certificate file in NODE_EXTRA_CA_CERTS (npm, pnpm) and PIP_CERT (pip).",
  },
  {
    signs:
      /ENOTFOUND|EAI_AGAIN|ENETUNREACH|ECONNREFUSED|ECONNRESET|ETIMEDOUT|ERR_SOCKET_TIMEOUT|Temporary failure (in name resolution|resolving)|Name or service not known|Could not resolve|Could not connect to|Network is unreachable|Failed to establish a new connection|Connection (refused|timed out|reset)|ReadTimeoutError|dns error|error sending request|META_FETCH_FAIL/i,
    remedy: () =>
      "A package registry cannot be reached: check the network (behind a proxy set HTTPS_PROXY; a mirror is set by `npm config set registry` and PIP_INDEX_URL), then run the same command again.",
  },
  {
    signs: /\b(E401|E403|ERR_PNPM_FETCH_40[13])\b|\b40[13] (Client Error|Forbidden|Unauthorized)/i,
    remedy: () =>
      "The package registry refused the request: log in to it, or choose another one (`npm config set registry`, PIP_INDEX_URL).",
  },
  {
    signs: /No matching version found for \S+ with a date before|Lockfile failed supply-chain policy check/,
    remedy: () =>
      "A setting of npm (min-release-age, before) or pnpm (minimumReleaseAge) refuses packages that are so new: wait, or allow them in this command, npm_config_before=null pnpm_config_minimum_release_age=0 ./terse ….",
  },
  {
    signs: /EACCES|EROFS|EPERM|Permission denied|Read-only file system/i,
    remedy: (output, at, places) => {
      const { folder, otherwise } = placeOf(output, at, places);
      return `${folder} is not writable: change its owner${otherwise}.`;
    },
  },
  {
    signs: /no such option: (\S+)/i,
    remedy: () =>
      "This pip is too old: `python3 -m pip install --user --upgrade pip`, then run the same command again.",
  },
  {
    signs: /No matching distribution found for (\S+)/,
    remedy: (output) =>
      `pip finds no ${/No matching distribution found for (\S+)/.exec(output)?.[1]}: check the network and the index (PIP_INDEX_URL), or name a libtorch ${libtorchRange.from} to ${libtorchRange.to} in LIBTORCH.`,
  },
  {
    signs: /ERR_PNPM_OUTDATED_LOCKFILE|lockfile .* not up[ -]to[ -]date/i,
    remedy: () =>
      "pnpm-lock.yaml does not fit the package.json files: `pnpm install`, and commit the lockfile with them.",
  },
  {
    signs: /ERR_PNPM_(UNEXPECTED_STORE|UNEXPECTED_VIRTUAL_STORE|MODULES_BREAKING_CHANGE|ABORTED_REMOVE_MODULES_DIR)/,
    remedy: () => "node_modules was made by another pnpm set-up: remove the folder, then run the same command again.",
  },
  {
    signs:
      /Killed signal terminated program|internal compiler error: Killed|virtual memory exhausted|cannot allocate memory/i,
    remedy: () =>
      "The compiler ran out of memory: `CMAKE_BUILD_PARALLEL_LEVEL=1 ./terse setup` builds one file at a time.",
  },
  {
    signs: /No CMAKE_C(XX)?_COMPILER could be found|is not a full path to an existing compiler/i,
    remedy: () => "No C++ compiler was found: `sudo apt-get install g++`.",
  },
  {
    signs: /CMake \d\S* or higher is required/i,
    remedy: () => "This CMake is too old: `python3 -m pip install --user cmake` installs a current one.",
  },
];

/** One sentence that says what to do about a failed command, from its output; undefined for an unknown cause. */
export function remedyFor(output: string, places: Places): string | undefined {
  const text = output.replaceAll(/\s+/g, " "); // pnpm breaks sentences at a terminal's width
  for (const { signs, remedy } of causes) {
    const at = signs.exec(text)?.index;
    if (at !== undefined) return remedy(text, at, places);
  }
  return undefined;
}

/** The folder that is named beside the sign, else the one in which the command ran; and what else one can do. */
function placeOf(output: string, at: number, { toolchain, checkout, cwd }: Places): Place {
  const known = [
    { folder: toolchain, otherwise: ", or choose another folder with TERSE_TOOLCHAIN=/path" },
    { folder: checkout, otherwise: ", or clone the repository into another folder" },
  ].sort((a, b) => b.folder.length - a.folder.length); // one may lie in the other
  const own = (path: string) => known.find(({ folder }) => `${path}/`.startsWith(`${folder}/`));
  const path = nearestPath(output, at);
  if (path === undefined) return own(cwd ?? toolchain) ?? own(toolchain)!;
  if (dirname(path) === tmpdir())
    return { folder: tmpdir(), otherwise: ", or choose another folder with TMPDIR=/path" };
  return own(path) ?? { folder: existing(path), otherwise: "" }; // such as npm's cache
}

/** The path nearest to a place in the output: quoted, or as npm and the compiler write it. */
function nearestPath(output: string, at: number): string | undefined {
  const from = Math.max(0, at - 200);
  const found = [...output.slice(from, at + 200).matchAll(/(?:["']|\bpath | to )(\/[^"']+)/g)];
  const distance = (index: number) => Math.abs(from + index - at);
  return found.sort((a, b) => distance(a.index) - distance(b.index))[0]?.[1];
}

/** The innermost folder of this path that is there. */
function existing(path: string): string {
  return existsSync(path) ? path : existing(dirname(path));
}

/** Throws `StepFailed` if the disk of `folder` has less than `bytes` free. */
export function requireSpace(folder: string, bytes: number): void {
  const free = freeBytes(folder);
  if (free === undefined || free >= bytes) return;
  throw new StepFailed(
    `The disk that holds ${folder} has ${gigabytes(free)} free and ${gigabytes(bytes)} are needed: free some space, or choose another folder with TERSE_TOOLCHAIN=/path.`,
  );
}

function freeSpace(folder: string): string {
  const free = freeBytes(folder);
  return free === undefined ? "" : ` (${gigabytes(free)} free)`;
}

function freeBytes(folder: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize;
  } catch {
    return undefined;
  }
}

function gigabytes(bytes: number): string {
  return `${(bytes / 1e9).toFixed(1)} GB`;
}
