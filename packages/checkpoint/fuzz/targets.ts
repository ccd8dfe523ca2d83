/** What reads untrusted bytes: headers of safetensors files, indices of shards, manifests of saves. */
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { CheckpointError } from "../src/checkpoint-error.ts";
import { type DType, elements } from "../src/dtypes.ts";
import { manifestFile, parseManifest, sealOf, writeManifest } from "../src/manifest.ts";
import type { StoredTensor } from "../src/safetensors.ts";
import { headerLength, parseHeader } from "../src/safetensors-header.ts";
import { saveModel } from "../src/save-model.ts";
import { indexFile, parseIndex, weightsFile } from "../src/weights.ts";
import { damaged, Random } from "./mutate.ts";

export interface Target {
  /** Texts of JSON, from real files. */
  readonly seeds: readonly string[];
  /**
   * Reads a damaged text. Throws `CheckpointError` where it is refused, and any other error where what was accepted is
   * not true.
   */
  use(text: string, random: Random): void;
}

const path = "file";

function demand(holds: boolean, what: string): void {
  if (!holds) throw new Error(what);
}

/** The header of a file of which only the header is there: its tensors lie where `size` ends. */
function useHeader(text: string, random: Random): void {
  const json = Buffer.from(text, random.below(16) ? "utf8" : "latin1"); // latin1: bytes that are no UTF-8
  if (json.length > 0 && random.below(8) === 0) json[random.below(json.length)]! ^= 1 << random.below(8);
  const start = new Uint8Array(8);
  const said = random.below(8)
    ? json.length
    : random.of([0, 1, json.length - 1, json.length + 1, 1e8, 1e8 + 1, 2 ** 53]);
  new DataView(start.buffer).setBigUint64(0, BigInt(Math.max(0, said)), true);
  if (random.below(64) === 0) start[random.below(8)] = random.below(256);
  const end = Number(/(\d+)\]\}[^\d]*$/.exec(text.slice(-64))?.[1] ?? 0); // of the last tensor
  const data = random.below(8) ? end : random.below(1 << 16);
  const size = random.below(64) ? 8 + json.length + data : random.below(16);
  const length = headerLength(start, size, path);
  demand(Number.isSafeInteger(length) && 8 + length <= size, "a header that is longer than its file");
  const { tensors, metadata } = parseHeader(json.subarray(0, length), size, path);
  let covered = 8 + Math.min(length, json.length);
  for (const { dtype, shape, begin, bytes } of [...tensors.values()].sort(
    (a, b) => a.begin - b.begin || a.bytes - b.bytes,
  )) {
    const count = shape.reduce((product, n) => product * BigInt(n), 1n);
    demand(
      4n * BigInt(bytes) === count * BigInt(4 * elements[dtype].bytes),
      "a tensor of another length than its shape",
    );
    demand(begin === covered, "a gap or an overlap");
    covered += bytes;
  }
  demand(covered === size, "data that belong to no tensor");
  for (const value of Object.values(metadata)) demand(typeof value === "string", "metadata that are no text");
}

function useIndex(text: string): void {
  for (const [name, file] of parseIndex(text, path).files)
    demand(
      typeof name === "string" && !/[/\\]|^\./.test(file) && file.endsWith(".safetensors"),
      "a shard outside the folder",
    );
}

/** Reads the text as a manifest, also with its checksum corrected: somebody may have made it. */
function useManifest(text: string, random: Random): void {
  const sealed = () => {
    const manifest = JSON.parse(text) as object | null;
    if (typeof manifest !== "object" || manifest === null || Array.isArray(manifest)) return text;
    const { crc32: _, ...rest } = manifest as { crc32?: unknown };
    return JSON.stringify({ ...rest, crc32: sealOf(rest) });
  };
  let given = text;
  if (random.below(8))
    try {
      given = sealed();
    } catch {
      // not JSON: as it is
    }
  for (const { name, bytes, crc32 } of parseManifest(given, path).files) {
    demand(
      typeof name === "string" && name.split("/").length <= 2 && !/\\|^\/|(^|\/)(\.|$)/.test(name),
      "a file outside the folder",
    );
    demand(Number.isSafeInteger(bytes) && typeof crc32 === "string", "a record without bytes or checksum");
  }
}

/** Targets, with seeds from files that are written now: all dtypes, empty and scalar tensors, metadata, shards. */
export async function makeTargets(): Promise<Record<string, Target>> {
  const folder = await mkdtemp(join(tmpdir(), "terse-fuzz-"));
  try {
    const tensor = (dtype: DType, shape: number[]): [string, StoredTensor] => {
      const bytes = shape.reduce((product, n) => product * n, elements[dtype].bytes);
      return [`${dtype}.${shape.join("x")}`, { dtype, shape, data: elements[dtype].array(new ArrayBuffer(bytes)) }];
    };
    const all = (Object.keys(elements) as DType[]).map((dtype) => tensor(dtype, [4, 2]));
    const sizes = [tensor("f32", []), tensor("f32", [0, 3]), tensor("i64", [1]), tensor("bf16", [2, 1, 3])];
    const headers: string[] = [];
    const records = [];
    for (const tensors of [[], sizes, all.slice(0, 3), all]) {
      records.push(...(await saveModel(folder, tensors, { layers: 1 })));
      const file = await readFile(join(folder, weightsFile));
      headers.push(file.toString("utf8", 8, 8 + headerLength(file, file.length, path)));
    }
    records.push(...(await saveModel(folder, all, {}, { shardBytes: 40 })));
    const index = await readFile(join(folder, indexFile), "utf8");
    await writeManifest(folder, { files: records });
    const manifest = await readFile(join(folder, manifestFile), "utf8");
    const small = index.replace(/(?<="weight_map": \{)[^}]*/, '"a": "model-00001-of-00001.safetensors"');
    return {
      header: { seeds: headers, use: useHeader },
      index: { seeds: [index, small], use: useIndex },
      manifest: {
        seeds: [manifest, '{"files":[{"name":"a","bytes":1,"crc32":"00000000"}],"step":1}'],
        use: useManifest,
      },
    };
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

export interface Counts {
  accepted: number;
  /** Refusals by what the message says: words without names and numbers. */
  readonly refused: Map<string, number>;
}

/**
 * Damages seeds `runs` times. Throws at the first text that is not refused as it should be, and says which one it was.
 */
export function fuzz({ seeds, use }: Target, runs: number, seed: number): Counts {
  Error.stackTraceLimit = 0; // most runs end in an error, and a stack takes as long as the rest
  const random = new Random(seed);
  const counts: Counts = { accepted: 0, refused: new Map() };
  for (let run = 0; run < runs; run++) {
    const text = random.below(1000) ? damaged(random.of(seeds), random, seeds) : random.of(seeds);
    try {
      use(text, random);
      counts.accepted++;
    } catch (error) {
      const { message } = error as Error;
      if (
        !(error instanceof CheckpointError) ||
        !message.startsWith(path) ||
        message.includes("\n") ||
        message.length > 70_000
      )
        throw new Error(`run ${run} of seed ${seed}: ${JSON.stringify(text)}`, { cause: error });
      const kind = message.replace(/"(?:[^"\\]|\\.)*"|\(.*\)|[\d.…]+/g, "").slice(0, 70);
      counts.refused.set(kind, (counts.refused.get(kind) ?? 0) + 1);
    }
  }
  return counts;
}
