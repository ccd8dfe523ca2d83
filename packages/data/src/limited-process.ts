/**
 * A program in a process of its own that may take only so much memory. It works on what others wrote, which may ask for
 * memory without end.
 */
import { type ChildProcess, type ForkOptions, fork } from "node:child_process";
import { existsSync } from "node:fs";

export interface LimitedOptions extends ForkOptions {
  readonly megabytes: number;
}

/** Node itself cannot set limits, but a shell can. Where there is none the process has no limit. */
export function forkLimited(program: URL, { megabytes, ...options }: LimitedOptions): ChildProcess {
  const shell = "/bin/sh";
  if (!existsSync(shell)) return fork(program, [], options);
  const words = ["-c", limits(megabytes), process.execPath, ...process.execArgv];
  return fork(program, [], { ...options, execPath: shell, execArgv: words });
}

// The limit counts what may be written, and not what is reserved: V8 reserves gigabytes. Where the machine's own memory
// ends first, the kernel ends this process before the run.
const limits = (megabytes: number) =>
  `{ ulimit -d ${megabytes * 1024}; echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; exec "$0" "$@"`;

/** Whether a process has ended because its memory was full, by the end of what it wrote to standard error. */
export const memoryWasFull = (signal: NodeJS.Signals | null, errors = "out of memory"): boolean =>
  (signal === "SIGABRT" || signal === "SIGTRAP") &&
  /out of memory|memory allocation of \d+\s+bytes failed|bad_alloc/i.test(errors);
