/** A checkpoint cannot be read or written. The message names the file, what is wrong, and what to do. */
export class CheckpointError extends Error {
  override readonly name = "CheckpointError";
}

/**
 * A checkpoint is not damaged, as far as can be seen, but cannot be read by this program, this user, or now: another
 * version wrote it, it belongs to someone else, or the server of its disk is away.
 */
export class OutOfReachError extends CheckpointError {}

const outOfReach = "EACCES EPERM ESTALE ENOTCONN EHOSTDOWN ETIMEDOUT EMFILE ENFILE ENOMEM".split(" ");

/** The error for a file that the system does not read, open or write. */
export function cannot(what: "read" | "open" | "write", path: string, error: unknown): CheckpointError {
  const code = (error as NodeJS.ErrnoException | undefined)?.code;
  const Kind = what !== "write" && code !== undefined && outOfReach.includes(code) ? OutOfReachError : CheckpointError;
  return new Kind(`Cannot ${what} ${path}: ${reasonOf(error) ?? error}.`, { cause: error });
}

const calls = [
  ["read", "scandir opendir stat lstat statfs readlink realpath"],
  ["open", "open"],
  ["write", "mkdir rename unlink rmdir rm copyfile link symlink"],
] as const;

const tooManyFiles = "too many files are open; let this process open more of them (ulimit -n)";
const shortages = [
  ["EMFILE", tooManyFiles],
  ["ENFILE", tooManyFiles],
  [
    "EAGAIN",
    "no more may run; allow more processes (ulimit -u, or the container's limit) or memory (ulimit -v), or start fewer ranks",
  ],
] as const;

/** Why a thread or a process could not begin; undefined for any other error. */
function withoutBeginning({ code, syscall, message }: NodeJS.ErrnoException): Error | undefined {
  const what = code === "ERR_WORKER_INIT_FAILED" ? "thread" : syscall?.startsWith("spawn") ? "process" : undefined;
  const [, shortage] = shortages.find(([name]) => what && message.includes(name)) ?? [];
  return shortage === undefined ? undefined : new Error(`a ${what} could not be started: ${shortage}`);
}

/** An error that Node throws for a path, a thread or a process, in words; any other error as it is. */
export function inWords(error: unknown): unknown {
  const { path, syscall } = (error ?? {}) as NodeJS.ErrnoException;
  const shortage = error instanceof Error ? withoutBeginning(error) : undefined;
  if (shortage) return shortage;
  if (path === undefined || syscall === undefined || reasonOf(error) === undefined) return error;
  const [what] = calls.find(([, all]) => all.split(" ").includes(syscall)) ?? [];
  return what === undefined ? error : cannot(what, path, error);
}

const denied = "permission denied; choose another folder, or make this one accessible";
const away = "the server of its disk is away, or no longer knows it; wait until it is back, or mount it again";
const reasons: Readonly<Record<string, string>> = {
  ENOSPC: "no space is left on its disk; free some and save again",
  EDQUOT: "your disk quota is used up; free some and save again",
  EFBIG: "it would be larger than the limit on file size; raise the limit (ulimit -f) or choose another folder",
  EMFILE: tooManyFiles,
  ENFILE: tooManyFiles,
  EACCES: denied,
  EPERM: denied,
  EROFS: "its disk is read-only; choose another folder, or copy this one to another disk",
  ESTALE: away,
  ENOTCONN: away,
  EHOSTDOWN: away,
  ETIMEDOUT: away,
  ENOENT: "it does not exist; check the path",
  ENOTDIR: "a part of the path is a file, not a folder; check the path",
  EEXIST: "a file, or a link that leads nowhere, has its name; choose another one, or remove that",
  ENAMETOOLONG: "a name in the path is too long; choose a shorter one",
  ELOOP: "its symbolic links form a cycle; check the path",
  EISDIR: "it is a folder; name a file",
  EIO: "the disk reports an error; look at the messages of the system, or use another one",
};

/** The words for a file system error, to follow "Cannot write x: "; undefined for any other error. */
export function reasonOf(error: unknown): string | undefined {
  const { code, message } = (error ?? {}) as NodeJS.ErrnoException;
  if (typeof code !== "string") return undefined;
  return reasons[code] ?? (/^E[A-Z0-9]+$/.test(code) ? message : undefined);
}
