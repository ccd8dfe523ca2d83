/**
 * The command that resumes from the last save: the last line of every exit. Rank 0 passes it on after each save, and a
 * launcher, which outlives its ranks, prints it for them.
 */
import { relative } from "node:path";
import { printableLine } from "@terse/options";
import type { Place } from "../launcher/flags.ts";
import { hasLauncher, type ResumeOffer, tellLauncher } from "../to-launcher.ts";

let offered: ResumeOffer | undefined;

/** Called by rank 0 after a save, and by a launcher with what rank 0 has sent. */
export function offerResume(offer: ResumeOffer): void {
  offered = offer;
  tellLauncher({ resume: offer });
}

/** Prints the command, unless a launcher does it. */
export function printResume(exitCode: number): void {
  if (offered === undefined || process.send) return;
  const command = ["./terse train --resume", offered.run, ...offered.start, ...offered.flags].join(" ");
  (exitCode === 0 ? process.stdout : process.stderr).write(`resume: ${command}\n`);
}

/**
 * A word of a shell's command line. In bash and zsh $'…' can hold control characters without sending them to the
 * terminal.
 */
export function quotedForShell(path: string): string {
  if (/^[\w./:-]+$/.test(path)) return path;
  if (printableLine(path) === path) return `'${path.replaceAll("'", "'\\''")}'`;
  const bytes = [...Buffer.from(path)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}

/** The command for a run's folder, with `flags`; a run that is complete goes on for as many steps again. */
export function resumeOffer(
  folder: string,
  { step, steps, ranks }: { step: number; steps: number; ranks: number },
  flags: readonly string[] = [],
): ResumeOffer {
  const near = relative(process.cwd(), folder);
  const path = near === "" || near.startsWith("..") ? folder : near;
  return {
    run: quotedForShell(path),
    // Other launchers, and ranks by hand, are started again as they were.
    start: ranks === 2 || !hasLauncher() ? [] : [`--nproc-per-node ${ranks}`],
    flags: [...(step < steps ? [] : [`--steps=${2 * steps}`]), ...flags],
  };
}

/** The flags that start this launcher among those of several machines; the others need theirs. */
export function startAmong({ nnodes, nodeRank, nprocPerNode, rdzvEndpoint }: Place): string[] {
  const { host, port } = rdzvEndpoint!; // the arguments have been checked
  const endpoint = quotedForShell(`${host.includes(":") ? `[${host}]` : host}:${port}`);
  return [
    `--nnodes ${nnodes}`,
    `--node-rank ${nodeRank}`,
    `--rdzv-endpoint ${endpoint}`,
    `--nproc-per-node ${nprocPerNode}`,
  ];
}
