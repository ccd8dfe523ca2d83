import { type ChildProcess, spawn } from "node:child_process";
import { onEnd } from "./on-end.ts";

/** A command failed. */
export class CommandFailed extends Error {
  override name = "CommandFailed";
  readonly output: string;
  readonly cwd: string | undefined;
  hint: string | undefined; // what else the user can do, added by the caller

  constructor(message: string, output: string, cwd?: string) {
    super(message);
    this.output = output;
    this.cwd = cwd;
  }
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string | undefined>; // added to this process's own; undefined removes a variable
  onOutput?: (text: string) => void;
}

/** Runs a command and resolves to its standard output; throws `CommandFailed`, with all its output, if it fails. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // its own process group, so that its children are ended with it
  });
  const cancel = onEnd(() => endGroup(child));
  let [stdout, output] = ["", ""];
  const take = (text: string) => {
    output += text;
    options.onOutput?.(text);
  };
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    take(text);
  });
  child.stderr.setEncoding("utf8").on("data", take);
  const shown = [command, ...args].join(" ");
  try {
    await new Promise<void>((resolve, reject) => {
      child.on("error", (error: NodeJS.ErrnoException) => {
        const message = error.code === "ENOENT" ? `${command}: command not found` : error.message;
        reject(new CommandFailed(message, output, options.cwd));
      });
      child.on("close", (code, signal) => {
        if (code === 0) resolve();
        else reject(new CommandFailed(`${shown} ended with ${signal ?? `exit code ${code}`}`, output, options.cwd));
      });
    });
  } finally {
    cancel();
  }
  return stdout;
}

/** The output of a command, or undefined if it is missing or fails. */
export async function ask(
  command: string,
  args: readonly string[],
  options: RunOptions = {},
): Promise<string | undefined> {
  try {
    return (await run(command, args, options)).trim();
  } catch {
    return undefined;
  }
}

function endGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null) return;
  try {
    process.kill(-child.pid, "SIGTERM");
  } catch {
    // the process has ended already
  }
}
