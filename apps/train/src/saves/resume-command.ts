/**
 * The command that resumes from the last save: the last line of every exit. Rank 0 passes it on after each save, and a
 * launcher, which outlives its ranks, prints it for them.
 */
import { relative } from "node:path";
import { printableLine } from "@terse/options";
import { tellLauncher } from "../to-launcher.ts";

let offered: string | undefined;

/** Called by rank 0 after a save, and by a launcher with what rank 0 has sent. */
export function offerResume(command: string): void {
  offered = command;
  tellLauncher({ resume: command });
}

/** Prints the command, unless a launcher does it. */
export function printResume(exitCode: number): void {
  if (offered === undefined || process.send) return;
  (exitCode === 0 ? process.stdout : process.stderr).write(`resume: ${offered}\n`);
}

/**
 * A word of a shell's command line. In bash and zsh $'…' can hold control characters without sending them to the
 * terminal.
 */
export function quotedForShell(path: string): string {
  if (/^[\w./-]+$/.test(path)) return path;
  if (printableLine(path) === path) return `'${path.replaceAll("'", "'\\''")}'`;
  const bytes = [...Buffer.from(path)].map((byte) => `\\x${byte.toString(16).padStart(2, "0")}`);
  return `$'${bytes.join("")}'`;
}

/** The command for a run's folder, with `flags`; a run that is complete goes on for as many steps again. */
export function resumeCommand(
  folder: string,
  { step, steps, ranks }: { step: number; steps: number; ranks: number },
  flags: readonly string[] = [],
): string {
  const near = relative(process.cwd(), folder);
  const path = near === "" || near.startsWith("..") ? folder : near;
  const quoted = quotedForShell(path);
  return [
    `./terse train --resume ${quoted}`,
    ...(ranks === 2 ? [] : [`--nproc-per-node ${ranks}`]),
    ...(step < steps ? [] : [`--steps=${2 * steps}`]),
    ...flags,
  ].join(" ");
}
