/** Fetches a published file from the web. Resumes an earlier attempt, and checks the checksum, or else the header. */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { createReadStream, existsSync } from "node:fs";
import { mkdtemp, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { DataError } from "../data-error.ts";
import { makeFolder } from "../make-folder.ts";
import { PositionalFile } from "../positional-file.ts";
import { headers, openTokenFile } from "../tokens/token-file.ts";
import type { Source } from "./sources.ts";
import { unzip } from "./unzip.ts";

/** The bytes fetched so far, and their total if it is known. */
export type Progress = (done: number, total: number | undefined) => void;

/**
 * Fetches a file into `folder`, unless it is there already, and unpacks an archive. Resolves to the path of the file,
 * or of the unpacked folder. Throws `DataError`.
 */
export async function fetchSource(source: Source, folder: string, progress: Progress = () => {}): Promise<string> {
  const target = join(folder, source.file);
  const unpacked = source.folder === undefined ? undefined : join(folder, source.folder);
  if (unpacked !== undefined && existsSync(unpacked)) return unpacked;
  makeFolder(dirname(target));
  if (!existsSync(target)) {
    await download(source, target, progress);
    await check(source, `${target}.partial`);
    await rename(`${target}.partial`, target);
  } else await check(source, target);
  if (unpacked === undefined) return target;
  // Unpacks into a folder of its own first: after an interruption, a part must not pass for the whole.
  const place = await mkdtemp(join(folder, "unpacking-"));
  try {
    if (target.endsWith(".zip")) await unzip(target, source.folder!, place);
    else await promisify(execFile)("tar", ["-xzf", resolve(target), "-C", resolve(place)]);
    await rename(join(place, source.folder!), unpacked);
  } catch (error) {
    throw new DataError(
      `Cannot unpack ${target}: ${(error as Error).message.trim()}; unpack it into ${folder} yourself.`,
    );
  } finally {
    await rm(place, { recursive: true, force: true });
  }
  return unpacked;
}

/** Appends the missing bytes to TARGET.partial. */
async function download({ url }: Source, target: string, progress: Progress): Promise<void> {
  const partial = `${target}.partial`;
  const elsewhere = `fetch it on another machine, put it at ${target}, and run the same command again`;
  const have = existsSync(partial) ? (await stat(partial)).size : 0;
  let response: Response;
  try {
    response = await fetch(url, have > 0 ? { headers: { Range: `bytes=${have}-` } } : {});
  } catch (error) {
    const { cause, message } = error as Error & { cause?: { code?: string; message?: string } };
    throw new DataError(`Cannot fetch ${url}: ${cause?.code ?? cause?.message ?? message}; ${elsewhere}.`);
  }
  if (response.status === 416) return; // nothing is missing
  if (!response.ok || response.body === null)
    throw new DataError(`Cannot fetch ${url}: the server answers ${response.status}; ${elsewhere}.`);
  const resumed = response.status === 206;
  const length = Number(response.headers.get("content-length") ?? Number.NaN) + (resumed ? have : 0);
  const total = Number.isFinite(length) ? length : undefined;
  await using file = await open(partial, resumed ? "a" : "w");
  let done = resumed ? have : 0;
  try {
    for await (const chunk of response.body) {
      await file.writeFile(chunk);
      done += chunk.length;
      progress(done, total);
    }
  } catch (error) {
    throw new DataError(
      `${url} was cut off after ${done} bytes: ${(error as Error).message}; run the same command again, which goes on from there.`,
    );
  }
}

/** Throws `DataError` if the file is not the published one; without a checksum, if it is not a whole file of tokens. */
async function check({ url, checksum }: Source, path: string): Promise<void> {
  if (checksum === undefined) return checkTokens(path, url);
  const [algorithm, digits] = checksum;
  const hash = createHash(algorithm);
  for await (const chunk of createReadStream(path)) hash.update(chunk as Uint8Array);
  const found = hash.digest("hex");
  if (found !== digits)
    throw new DataError(
      `${path} is not the published file: its ${algorithm} is ${found}, not ${digits}; remove it and fetch ${url} again.`,
    );
}

function checkTokens(path: string, url: string): void {
  using file = new PositionalFile(path);
  const [magic] = new Int32Array(file.read(0, Math.min(4, file.size & ~3)).buffer);
  if (!headers.some((header) => header.magic === magic))
    throw new DataError(
      `${path} is not the published file: it has no header of tokens; remove it and fetch ${url} again.`,
    );
  void openTokenFile(path).close(); // compares its size with its header
}
