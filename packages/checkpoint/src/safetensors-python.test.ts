/** Exchanges files with the format's own library, in both directions. */
import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { type DType, elementCount, elements } from "./dtypes.ts";
import { float8ToFloat32 } from "./float8.ts";
import { openSafetensors, type StoredTensor, writeSafetensors } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";
import { openWeights } from "./weights.ts";

/** TERSE_PYTHON, else the newest Python of the toolchain folder that has PyTorch and safetensors. */
function findPython(): string | undefined {
  const toolchain =
    process.env["TERSE_TOOLCHAIN"] ?? join(process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache"), "terse");
  const found = existsSync(toolchain)
    ? readdirSync(toolchain)
        .filter((name) => name.startsWith("python-"))
        .sort(new Intl.Collator("en", { numeric: true }).compare)
        .reverse()
        .map((name) => join(toolchain, name, "bin", "python"))
    : [];
  const named = process.env["TERSE_PYTHON"];
  const probe = "import importlib.util as u, sys; sys.exit(not (u.find_spec('torch') and u.find_spec('safetensors')))";
  return (named ? [named] : found).find((python) => spawnSync(python, ["-c", probe]).status === 0);
}

/** Types that safetensors' reader for PyTorch does not know. */
const unknownToPytorch = ["f8_e8m0", "f6_e3m2", "f6_e2m3", "f4"] as const;
type Known = Exclude<DType, (typeof unknownToPytorch)[number]>;
const dtypes = (Object.keys(elements) as DType[]).filter(
  (dtype): dtype is Known => !(unknownToPytorch as readonly DType[]).includes(dtype),
);

const python = findPython();
let folder: string;
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-python-"));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const run = (script: string, ...args: string[]) =>
  execFileSync(python!, ["-c", script, ...args], { encoding: "utf8", maxBuffer: 1 << 26 });

/** Tensors of every dtype, with empty and scalar shapes, and with names that need escapes or are not ASCII. */
function examples(): Map<string, StoredTensor> {
  const tensors = new Map<string, StoredTensor>();
  let seed = 7;
  for (const dtype of dtypes)
    for (const [name, shape] of [
      ["z.weight", [3, 5]],
      ["a", []],
      ["bias 日本🦁", [4]],
      ['none "\\', [2, 0]],
    ] as const) {
      const bytes = new Uint8Array(elementCount(shape) * elements[dtype].bytes);
      for (const i of bytes.keys()) {
        seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
        bytes[i] = dtype === "bool" ? seed >>> 31 : seed >>> 24;
      }
      tensors.set(`${name}.${dtype}`, { dtype, shape, data: elements[dtype].array(bytes.buffer) });
    }
  return tensors;
}
const hexOf = (view: ArrayBufferView) => Buffer.from(view.buffer, view.byteOffset, view.byteLength).toString("hex");

describe.skipIf(python === undefined)(
  "Python's safetensors (skipped without PyTorch and safetensors in TERSE_PYTHON)",
  () => {
    it("reads our file, and writes the same bytes from it", async () => {
      const ours = join(folder, "ours.safetensors");
      const theirs = join(folder, "theirs.safetensors");
      const tensors = examples();
      await writeSafetensors(ours, tensors, { format: "pt" });
      const seen = JSON.parse(
        run(
          `
import json, sys, torch
from safetensors import safe_open
from safetensors.torch import save_file
seen, tensors = {}, {}
with safe_open(sys.argv[1], "pt") as f:
    for name in f.keys():
        t = tensors[name] = f.get_tensor(name)
        raw = bytes(t.contiguous().reshape(-1).view(torch.uint8).tolist()) if t.numel() else b""
        seen[name] = [str(t.dtype), list(t.shape), raw.hex()]
    save_file(tensors, sys.argv[2], metadata=f.metadata())
print(json.dumps(seen))`,
          ours,
          theirs,
        ),
      );
      const torchName: Record<Known, string> = {
        f64: "float64",
        f32: "float32",
        f16: "float16",
        bf16: "bfloat16",
        i64: "int64",
        i32: "int32",
        i16: "int16",
        i8: "int8",
        u8: "uint8",
        bool: "bool",
        u16: "uint16",
        u32: "uint32",
        u64: "uint64",
        c64: "complex64",
        f8_e4m3: "float8_e4m3fn",
        f8_e5m2: "float8_e5m2",
        f8_e4m3fnuz: "float8_e4m3fnuz",
        f8_e5m2fnuz: "float8_e5m2fnuz",
      };
      const expected = [...tensors].map(([name, { dtype, shape, data }]) => [
        name,
        [`torch.${torchName[dtype as Known]}`, shape, hexOf(data)],
      ]);
      expect(seen).toEqual(Object.fromEntries(expected));
      expect(readFileSync(ours).equals(readFileSync(theirs))).toBe(true);
    });

    it("reads our shards by their index, and we read those that Hugging Face's library writes, in every dtype", async () => {
      const tensors = examples();
      const [ours, theirs] = [join(folder, "shards"), join(folder, "their-shards")];
      await saveModel(ours, tensors, {}, { shardBytes: 100 });
      const seen = JSON.parse(
        run(
          `
import json, os, sys, torch
from huggingface_hub import save_torch_state_dict
from safetensors import safe_open
ours, theirs = sys.argv[1:]
with open(os.path.join(ours, "model.safetensors.index.json")) as f:
    index = json.load(f)
seen, tensors = {}, {}
for name, file in index["weight_map"].items():
    with safe_open(os.path.join(ours, file), "pt") as f:
        t = tensors[name] = f.get_tensor(name)
    seen[name] = bytes(t.contiguous().reshape(-1).view(torch.uint8).tolist()).hex() if t.numel() else ""
os.makedirs(theirs)
save_torch_state_dict(tensors, theirs, max_shard_size=100)
print(json.dumps([seen, index["metadata"]["total_size"], len(set(index["weight_map"].values()))]))`,
          ours,
          theirs,
        ),
      );
      const bytes = new Map([...tensors].map(([name, { data }]) => [name, hexOf(data)]));
      const total = [...tensors.values()].reduce((sum, { data }) => sum + data.byteLength, 0);
      expect(seen).toEqual([Object.fromEntries(bytes), total, expect.any(Number)]);
      expect(seen[2]).toBeGreaterThan(5);
      expect(readdirSync(theirs).length).toBeGreaterThan(5);
      await using weights = await openWeights(theirs);
      expect(new Set(weights.tensors.keys())).toEqual(new Set(tensors.keys()));
      for (const [name, { dtype, shape, data }] of tensors) {
        const read = await weights.read(name);
        expect([name, read.dtype, read.shape, hexOf(read.data)]).toEqual([name, dtype, shape, hexOf(data)]);
      }
    });

    it("writes files that we read", async () => {
      const path = join(folder, "written.safetensors");
      const seen = JSON.parse(
        run(
          `
import json, sys, torch
from safetensors.torch import save_file
torch.manual_seed(0)
tensors = {f"layer.{i}.{d}": (torch.randn(i, 3) * 50).to(getattr(torch, d))
  for i in (0, 1, 4) for d in ("float64", "float32", "float16", "bfloat16", "int64", "int32", "int16", "int8", "uint8", "bool")}
tensors["scalar"] = torch.tensor(2.5)
save_file(tensors, sys.argv[1], metadata={"format": "pt", "note": "öä"})
print(json.dumps({name: [list(t.shape), t.to(torch.float64).reshape(-1).tolist()] for name, t in tensors.items()}))`,
          path,
        ),
      ) as Record<string, [number[], number[]]>;
      await using file = await openSafetensors(path);
      expect({ ...file.metadata }).toEqual({ format: "pt", note: "öä" });
      expect(new Set(file.tensors.keys())).toEqual(new Set(Object.keys(seen)));
      for (const [name, [shape, values]] of Object.entries(seen)) {
        const stored = await file.read(name);
        expect(stored.shape).toEqual(shape);
        expect(valuesOf(stored)).toEqual(values);
      }
    });

    it("reads floats of 8 bits as PyTorch does, every code", async () => {
      const types = ["f8_e4m3", "f8_e5m2", "f8_e8m0", "f8_e4m3fnuz", "f8_e5m2fnuz"] as const;
      const seen = JSON.parse(
        run(`
import json, torch
codes = torch.arange(256, dtype=torch.uint8)
names = ["float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu", "float8_e4m3fnuz", "float8_e5m2fnuz"]
print(json.dumps([[str(x) for x in codes.view(getattr(torch, n)).to(torch.float32).to(torch.float64).tolist()] for n in names]))`),
      ) as string[][];
      const words: Record<string, number> = {
        nan: Number.NaN,
        inf: Number.POSITIVE_INFINITY,
        "-inf": Number.NEGATIVE_INFINITY,
      };
      const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
      for (const [i, dtype] of types.entries())
        expect([...float8ToFloat32(dtype, codes)], dtype).toEqual(seen[i]!.map((text) => words[text] ?? Number(text)));
    });

    it("refuses the invalid files that we refuse", async () => {
      const { writeFileSync } = await import("node:fs");
      const path = join(folder, "bad.safetensors");
      const headers: [string, number][] = [
        ['{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,1]}}', 1],
        ['{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}', 2],
        ['{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 2],
        [
          '{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}',
          3,
        ],
        ['{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}', 0],
        ["[]", 0],
      ];
      for (const [header, data] of headers) {
        const length = Buffer.alloc(8);
        length.writeBigUInt64LE(BigInt(header.length));
        writeFileSync(path, Buffer.concat([length, Buffer.from(header), Buffer.alloc(data)]));
        await expect(openSafetensors(path)).rejects.toThrow(/is incomplete|is not a valid safetensors file/);
        const theirs = spawnSync(
          python!,
          ["-c", "import sys; from safetensors import safe_open; safe_open(sys.argv[1], 'np')", path],
          {
            encoding: "utf8",
          },
        );
        expect(theirs.stderr).toMatch(/SafetensorError/);
      }
    });
  },
);

/** Elements as doubles; f16 and bf16 by their definition (IEEE 754 binary16; bfloat16 is the upper half of a float). */
function valuesOf({ dtype, data }: StoredTensor): number[] {
  if (dtype === "bf16")
    return Array.from(new Float32Array(Uint32Array.from(data as Uint16Array, (bits) => bits << 16).buffer));
  if (dtype !== "f16") return Array.from(data as Iterable<number | bigint>, Number);
  return Array.from(data as Uint16Array, (bits) => {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = bits & 1023;
    if (exponent === 31) return fraction ? Number.NaN : sign * Number.POSITIVE_INFINITY;
    return sign * (exponent === 0 ? fraction * 2 ** -24 : (1 + fraction / 1024) * 2 ** (exponent - 15));
  });
}
