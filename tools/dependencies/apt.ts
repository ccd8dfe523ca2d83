import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { CommandFailed } from "../run.ts";
import type { Progress } from "../steps.ts";
import { which } from "../which.ts";

/** The release of the distribution, "debian-12" or "ubuntu-24.04"; undefined where there is no apt. */
export function aptRelease(osRelease = readOsRelease()): string | undefined {
  if (osRelease === undefined || which("apt-get") === undefined || which("dpkg") === undefined) return undefined;
  const field = (name: string) => new RegExp(`^${name}="?([^"\n]*)"?$`, "m").exec(osRelease)?.[1];
  const [id, version] = [field("ID"), field("VERSION_ID") ?? field("VERSION_CODENAME")];
  return id === undefined ? undefined : [id, version].filter(Boolean).join("-");
}

/**
 * Unpacks distribution packages into `folder` without root: `apt-get download` checks their signatures, `dpkg -x`
 * unpacks them. Uses this machine's package lists, or fetches its own where those are missing or old. `complete` also
 * unpacks every dependency that this machine lacks.
 */
export async function unpackFromApt(
  progress: Progress,
  packages: readonly string[],
  folder: string,
  { complete = false } = {},
): Promise<void> {
  const downloads = join(folder, ".apt");
  mkdirSync(downloads, { recursive: true });
  try {
    await download(progress, packages, downloads, complete, []);
  } catch (error) {
    if (!(error instanceof CommandFailed)) throw error;
    progress.say("fetching package lists");
    const own = privateLists(downloads);
    await progress.run("apt-get", [...own, "update"]);
    await download(progress, packages, downloads, complete, own);
  }
  for (const file of readdirSync(downloads)) {
    if (file.endsWith(".deb")) await progress.run("dpkg", ["-x", join(downloads, file), folder]);
  }
  rmSync(downloads, { recursive: true });
}

/**
 * Downloads the packages, and the libraries that they need and this machine lacks. apt knows the names, which differ
 * between releases. With a `-dev` package comes its own run-time library, but not the other `-dev` packages that it
 * depends on.
 */
async function download(
  progress: Progress,
  packages: readonly string[],
  downloads: string,
  complete: boolean,
  options: readonly string[],
): Promise<void> {
  const wanted = new Set(packages);
  const addMissing = async (asked: readonly string[]) => {
    const simulate = ["install", "--print-uris", "-qq", "--no-install-recommends", ...asked];
    for (const missing of packagesInUris(await progress.run("apt-get", [...options, ...simulate]))) wanted.add(missing);
  };
  if (complete) await addMissing(packages);
  for (const name of complete ? [] : packages) {
    const depends = runtimeLibraries(name, await progress.run("apt-cache", [...options, "depends", name]));
    for (const library of depends) wanted.add(library);
    if (depends.length > 0) await addMissing(depends);
  }
  await progress.run("apt-get", [...options, "-o", "APT::Sandbox::User=root", "download", ...wanted], {
    cwd: downloads,
  });
}

/** A -dev package's own libraries in the output of `apt-cache depends libgloo-dev`: libgloo0, libgloo0t64 … */
export function runtimeLibraries(development: string, depends: string): string[] {
  if (!development.endsWith("-dev")) return [];
  const stem = development.slice(0, -"-dev".length);
  const names = [...depends.matchAll(/^\s*\|?Depends:\s*([^\s<>]+)/gm)].map((match) => match[1]!.replace(/:\w+$/, ""));
  return [...new Set(names)].filter((name) => name.startsWith(stem) && !name.endsWith("-dev"));
}

/**
 * The package names in the output of `apt-get --print-uris install`:
 *
 *   'http://…/libgloo0_0.5_amd64.deb' libgloo0_0.5_amd64.deb 163880 …
 */
export function packagesInUris(answer: string): string[] {
  return [...answer.matchAll(/^'[^']+'\s+(\S+)\.deb\s/gm)].map((match) => basename(match[1]!).split("_")[0]!);
}

/** Options that make apt keep lists and caches in `folder`, without its hooks, which need root. */
function privateLists(folder: string): string[] {
  for (const part of ["state/lists/partial", "cache/archives/partial"])
    mkdirSync(join(folder, part), { recursive: true });
  const config = join(folder, "apt.conf");
  const hooks = [
    "APT::Update::Pre-Invoke",
    "APT::Update::Post-Invoke",
    "APT::Update::Post-Invoke-Success",
    "DPkg::Post-Invoke",
  ];
  const lines = hooks.map((hook) => `#clear ${hook};`);
  lines.push(
    `Dir::State "${join(folder, "state")}/";`,
    `Dir::State::status "/var/lib/dpkg/status";`,
    `Dir::Cache "${join(folder, "cache")}/";`,
    `Acquire::Languages "none";`,
    `APT::Sandbox::User "root";`,
    // Otherwise a failed fetch is only a warning, and the next command fails with a misleading error.
    `APT::Update::Error-Mode "any";`,
  );
  writeFileSync(config, `${lines.join("\n")}\n`);
  return ["-c", config];
}

function readOsRelease(): string | undefined {
  return existsSync("/etc/os-release") ? readFileSync("/etc/os-release", "utf8") : undefined;
}
