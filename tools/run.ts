import { type ChildProcess, spawn } from "node:child_process";
import { onEnd } from "./on-end.ts";

/** A command that did not do what it was asked. */
export class CommandFailed extends Error {
  override name = "CommandFailed";
  readonly output: string;
  hint: string | undefined; // another way, said by who knows what the command was for

  constructor(message: string, output: string) {
    super(message);
    this.output = output;
  }
}

export interface RunOptions {
  cwd?: string;
  env?: Record<string, string | undefined>; // over this process's own; undefined takes a variable away
  onOutput?: (text: string) => void;
}

/** Runs a command to its end and gives its standard output; throws `CommandFailed` with all its output otherwise. */
export async function run(command: string, args: readonly string[], options: RunOptions = {}): Promise<string> {
  const child = spawn(command, args, {
    cwd: options.cwd,
    env: { ...process.env, ...options.env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own, so that whatever it started ends with it
  });
  const withdraw = onEnd(() => endGroup(child));
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
        reject(new CommandFailed(error.code === "ENOENT" ? `${command}: command not found` : error.message, output));
      });
      child.on("close", (code, signal) => {
        if (code === 0) resolve();
        else reject(new CommandFailed(`${shown} ended with ${signal ?? `exit code ${code}`}`, output));
      });
    });
  } finally {
    withdraw();
  }
  return stdout;
}

/** The output of a command, or undefined when it is missing or fails: for questions, not for work. */
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
    // already gone
  }
}
