import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { CheckpointError } from "./checkpoint-error.ts";
import { type DType, elementCount, elements } from "./dtypes.ts";
import {
  openSafetensors,
  readSafetensors,
  type StoredTensor,
  type WritableTensor,
  writeSafetensors,
} from "./safetensors.ts";
import { repeatedKey } from "./safetensors-header.ts";

let folder: string;
let path: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-safetensors-"));
  path = join(folder, "a.safetensors");
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** Writes a file with this header and data (a number: so many zero bytes), valid or not. */
function put(header: unknown, data: number | Uint8Array = 0, length?: bigint): void {
  const json = Buffer.from(typeof header === "string" ? header : JSON.stringify(header));
  const start = Buffer.alloc(8);
  start.writeBigUInt64LE(length ?? BigInt(json.length));
  writeFileSync(path, Buffer.concat([start, json, typeof data === "number" ? Buffer.alloc(data) : data]));
}

async function errorOf(names?: string[]): Promise<string> {
  const error = await readSafetensors(path, names).then(
    () => undefined,
    (error) => error,
  );
  expect(error).toBeInstanceOf(CheckpointError);
  expect(error.message).not.toContain("\n");
  return error.message.replaceAll(folder, "DIR");
}

const f32 = (shape: number[], ...values: number[]): StoredTensor => ({
  dtype: "f32",
  shape,
  data: Float32Array.from(values),
});

describe("safetensors", () => {
  // The example of the format's documentation.
  it("writes the bytes that the format describes", async () => {
    await writeSafetensors(path, [["t", f32([1, 2], 1, -2)]], { made: "by hand" });
    const json = '{"__metadata__":{"made":"by hand"},"t":{"dtype":"F32","shape":[1,2],"data_offsets":[0,8]}}';
    const padded = json.padEnd(96, " ");
    expect(readFileSync(path)).toEqual(
      Buffer.concat([
        Buffer.from([96, 0, 0, 0, 0, 0, 0, 0]),
        Buffer.from(padded),
        Buffer.from([0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0]),
      ]),
    );
    expect(readdirSync(folder)).toEqual(["a.safetensors"]);
  });

  it("reads what it wrote: every dtype, shapes of zero to five dimensions, empty tensors, unusual names", async () => {
    const tensors = new Map<string, StoredTensor>();
    let seed = 1;
    const random = () => (seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0);
    const shapes = [[], [0], [3, 0, 2], [1], [7], [2, 3], [1, 2, 3, 4, 5]];
    const names = ["weight", "", "a.b.0", "日本🦁", 'quote " \\ \n \u0001', "__proto__", "constructor", "__metadata"];
    for (const [d, dtype] of (Object.keys(elements) as DType[]).entries())
      for (const [s, shape] of shapes.entries()) {
        if (!Number.isInteger(elementCount(shape) * elements[dtype].bytes)) continue; // of 4 or 6 bits
        const bytes = Uint8Array.from({ length: elementCount(shape) * elements[dtype].bytes }, () => random() >>> 24);
        const data = elements[dtype].array((dtype === "bool" ? bytes.map((byte) => byte & 1) : bytes).buffer);
        tensors.set(`${names[(d + s) % names.length]}${d === 0 ? "" : `/${dtype}`}`, { dtype, shape, data });
      }
    await writeSafetensors(path, tensors, { note: "öäü", empty: "" });
    await using file = await openSafetensors(path);
    expect({ ...file.metadata }).toEqual({ note: "öäü", empty: "" });
    expect(new Set(file.tensors.keys())).toEqual(new Set(tensors.keys()));
    for (const [name, tensor] of tensors) expect(await file.read(name)).toEqual(tensor);
    for (const { begin, dtype } of file.tensors.values()) expect(begin % Math.ceil(elements[dtype].bytes)).toBe(0);
  });

  it("writes the same bytes for any order of the tensors", async () => {
    const tensors: [string, StoredTensor][] = [
      ["b", f32([1], 1)],
      ["a", f32([1], 2)],
      ["c", { dtype: "i64", shape: [1], data: BigInt64Array.of(3n) }],
    ];
    await writeSafetensors(path, tensors);
    const bytes = readFileSync(path);
    await writeSafetensors(path, tensors.reverse());
    expect(readFileSync(path)).toEqual(bytes);
  });

  it("reads a tensor's elements when it writes them, and accepts views of a larger array", async () => {
    const read: string[] = [];
    const source = (name: string, data: ArrayBufferView) => ({
      dtype: "f32" as const,
      shape: [2],
      toTypedArray: async () => {
        read.push(name);
        return data;
      },
    });
    const all = Float32Array.of(0, 1, 2, 3);
    await writeSafetensors(path, [
      ["y", source("y", all.subarray(2))],
      ["x", source("x", all.subarray(1, 3))],
    ]);
    expect(read).toEqual(["x", "y"]);
    expect((await readSafetensors(path)).get("x")).toEqual(f32([2], 1, 2));
    expect((await readSafetensors(path)).get("y")).toEqual(f32([2], 2, 3));
  });

  it("writes elements that come in parts, at once or later, one part after the other", async () => {
    const all = Float32Array.of(0, 1, 2, 3);
    const whole = { dtype: "f32", shape: [4] } as const;
    let inUse = 0;
    async function* oneByOne() {
      for (let i = 0; i < 4; i++) {
        expect(inUse++).toBe(0);
        yield Float32Array.of(i);
        inUse--;
      }
    }
    await writeSafetensors(path, [["x", { ...whole, data: all }]]);
    const bytes = readFileSync(path);
    for (const parts of [oneByOne, () => [all.subarray(0, 3), all.subarray(3)], () => [all, new Float32Array()]]) {
      await writeSafetensors(path, [["x", { ...whole, parts }]]);
      expect(readFileSync(path)).toEqual(bytes);
    }
  });

  it("reads only the named tensors", async () => {
    put(
      { a: { dtype: "BOOL", shape: [1], data_offsets: [0, 1] }, b: { dtype: "U8", shape: [1], data_offsets: [1, 2] } },
      Uint8Array.of(9, 5),
    );
    expect(await readSafetensors(path, ["b"])).toEqual(
      new Map([["b", { dtype: "u8", shape: [1], data: Uint8Array.of(5) }]]),
    );
    expect(await errorOf(["a"])).toMatch(/^DIR\/a\.safetensors is damaged: element 0 of the bool tensor "a" is 9;/);
    expect(await errorOf(["c"])).toBe('DIR/a.safetensors has no tensor "c"; it has a, b.');
  });

  it("reads a file without tensors, with null metadata, and with an unpadded or unordered header", async () => {
    put({});
    expect((await readSafetensors(path)).size).toBe(0);
    put(
      {
        __metadata__: null,
        b: { dtype: "U8", shape: [], data_offsets: [1, 2] },
        a: { data_offsets: [0, 1], shape: [1], dtype: "I8", more: [{}] },
      },
      Uint8Array.of(255, 7),
    );
    const tensors = await readSafetensors(path);
    expect(tensors.get("a")!.data).toEqual(Int8Array.of(-1));
    expect(tensors.get("b")).toEqual({ dtype: "u8", shape: [], data: Uint8Array.of(7) });
    put(
      {
        b: { dtype: "U8", shape: [1], data_offsets: [0, 1] },
        none: { dtype: "U8", shape: [0], data_offsets: [0, 0] },
      },
      1,
    );
    expect((await readSafetensors(path)).get("none")!.data.length).toBe(0);
  });
});

describe("an incomplete safetensors file", () => {
  it("is refused at every length; the error says how many bytes there are and what to do", async () => {
    await writeSafetensors(path, [
      ["a", f32([3], 1, 2, 3)],
      ["b", { dtype: "u8", shape: [5], data: new Uint8Array(5) }],
    ]);
    const whole = readFileSync(path);
    for (let length = 0; length < whole.length; length++) {
      writeFileSync(path, whole.subarray(0, length));
      const header = 8 + Number(whole.readBigUInt64LE());
      const needed = length < 8 ? "at least 8" : length < header ? `at least ${header}` : whole.length;
      expect(await errorOf()).toBe(
        `DIR/a.safetensors is incomplete: it has ${length} of ${needed} bytes. The run or copy that wrote it did not finish; copy it again, or use an earlier checkpoint.`,
      );
    }
    writeFileSync(path, whole);
    expect((await readSafetensors(path)).size).toBe(2);
  });
});

describe("an invalid safetensors file", () => {
  const u8 = (begin: unknown, end: unknown, shape: unknown = [1]) => ({
    dtype: "U8",
    shape,
    data_offsets: [begin, end],
  });

  it("says of a pointer of Git LFS what fetches the file", async () => {
    writeFileSync(path, "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n");
    await expect(openSafetensors(path)).rejects.toThrow(
      `${path} is a pointer of Git LFS in place of the file; git lfs pull fetches it.`,
    );
  });

  it.each<[string, () => void, string]>([
    [
      "a header beyond 100 MB",
      () => put("{}", 0, 100_000_001n),
      "its header would have 100000001 bytes, but the format allows at most 100000000",
    ],
    [
      "a header of 2⁶⁴ − 1 bytes",
      () => put("{}", 0, 2n ** 64n - 1n),
      "its header would have 18446744073709551615 bytes, but the format allows at most 100000000",
    ],
    ["no header", () => put(""), "its header does not start with {"],
    ["a header that starts with a space", () => put(" {}"), "its header does not start with {"],
    ["bad JSON", () => put("{]"), "its header is not valid JSON, or is nested too deep"],
    ["a string that stays open", () => put('{"a'), "its header is not valid JSON, or is nested too deep"],
    ["an escape at the end", () => put('{"a\\'), "its header is not valid JSON, or is nested too deep"],
    [
      "brackets without end",
      () => put(`{"a":${"[".repeat(1_000_000)}`),
      "its header is not valid JSON, or is nested too deep",
    ],
    [
      "brackets without end that close",
      () => put(`{"a":${"[".repeat(100_000)}${"]".repeat(100_000)}}`),
      "its header is not valid JSON, or is nested too deep",
    ],
    ["zeros after the JSON", () => put("{}\0\0"), "its header is not valid JSON, or is nested too deep"],
    [
      "a name twice",
      () => put(`{"a":${JSON.stringify(u8(0, 1))},"\\u0061":${JSON.stringify(u8(0, 1))}}`, 1),
      'its header has the key "a" twice',
    ],
    [
      "a field twice",
      () => put('{"a":{"dtype":"U8","shape":[1],"shape":[1],"data_offsets":[0,1]}}', 1),
      'its header has the key "shape" twice',
    ],
    ["metadata that is not an object", () => put({ __metadata__: [] }), "its __metadata__ is not an object"],
    ["metadata that is not a string", () => put({ __metadata__: { a: 1 } }), 'its metadata "a" is not a string'],
    ["a tensor that is not an object", () => put({ a: 5 }), 'tensor "a" is not described by an object'],
    [
      "an unknown dtype",
      () => put({ a: { dtype: "F8_E9", shape: [1], data_offsets: [0, 1] } }, 1),
      'tensor "a" has the dtype "F8_E9", which the format does not have',
    ],
    [
      "no dtype",
      () => put({ a: { shape: [1], data_offsets: [0, 1] } }, 1),
      'tensor "a" has the dtype nothing, which the format does not have',
    ],
    [
      "a dtype named like something inherited",
      () => put({ a: { dtype: "toString", shape: [], data_offsets: [0, 1] } }, 1),
      'tensor "a" has the dtype "toString", which the format does not have',
    ],
    [
      "no shape",
      () => put({ a: { dtype: "U8", data_offsets: [0, 1] } }, 1),
      'tensor "a" has the shape nothing, which is not a list of sizes',
    ],
    [
      "a negative dimension",
      () => put({ a: u8(0, 1, [-1]) }, 1),
      'tensor "a" has the shape [-1], which is not a list of sizes',
    ],
    [
      "a fractional dimension",
      () => put({ a: u8(0, 1, [0.5, 2]) }, 1),
      'tensor "a" has the shape [0.5,2], which is not a list of sizes',
    ],
    [
      "a product beyond 2⁵³",
      () => put({ a: u8(0, 1, [2 ** 30, 2 ** 30]) }, 1),
      'tensor "a" has the shape [1073741824,1073741824], which is not a list of sizes',
    ],
    [
      "a product that wraps to 1 in 64 bits",
      () => put('{"a":{"dtype":"U8","shape":[4294967297,4294967295,1],"data_offsets":[0,1]}}', 1),
      'tensor "a" has the shape [4294967297,4294967295,1], which is not a list of sizes',
    ],
    [
      "no offsets",
      () => put({ a: { dtype: "U8", shape: [1] } }, 1),
      'tensor "a" has the offsets nothing, which are not a begin and an end',
    ],
    [
      "three offsets",
      () => put({ a: { dtype: "U8", shape: [1], data_offsets: [0, 1, 1] } }, 1),
      'tensor "a" has the offsets [0,1,1], which are not a begin and an end',
    ],
    [
      "offsets the wrong way round",
      () => put({ a: u8(1, 0) }, 1),
      'tensor "a" has the offsets [1,0], which are not a begin and an end',
    ],
    [
      "a negative offset",
      () => put({ a: u8(-1, 0) }, 1),
      'tensor "a" has the offsets [-1,0], which are not a begin and an end',
    ],
    [
      "offsets that are strings",
      () => put({ a: u8("0", "1") }, 1),
      'tensor "a" has the offsets ["0","1"], which are not a begin and an end',
    ],
    [
      "a shape larger than its bytes",
      () => put({ a: u8(0, 1, [2]) }, 1),
      'tensor "a" has 1 bytes, but shape (2) in U8 needs 2',
    ],
    [
      "a shape smaller than its bytes",
      () => put({ a: u8(0, 4, [1]) }, 4),
      'tensor "a" has 4 bytes, but shape (1) in U8 needs 1',
    ],
    [
      "tensors that overlap",
      () => put({ a: u8(0, 2, [2]), b: u8(1, 3, [2]) }, 3),
      'tensor "b" overlaps the one before it',
    ],
    ["two tensors in one place", () => put({ a: u8(0, 1), b: u8(0, 1) }, 1), 'tensor "b" overlaps the one before it'],
    [
      "an empty tensor inside another",
      () => put({ a: u8(0, 2, [2]), b: u8(1, 1, [0]) }, 2),
      'tensor "b" overlaps the one before it',
    ],
    ["a gap at the start", () => put({ a: u8(2, 3) }, 3), '2 bytes before tensor "a" belong to no tensor'],
    [
      "a gap between tensors",
      () => put({ a: u8(0, 1), b: u8(2, 3) }, 3),
      '1 bytes before tensor "b" belong to no tensor',
    ],
    ["bytes after the last tensor", () => put({ a: u8(0, 1) }, 4), "3 bytes at its end belong to no tensor"],
  ])("is refused for %s", async (_, make, what) => {
    make();
    expect(await errorOf()).toBe(
      `DIR/a.safetensors is not a valid safetensors file: ${what}; copy it again, or use an earlier checkpoint.`,
    );
  });

  it("is refused for a header that is not UTF-8", async () => {
    writeFileSync(path, Buffer.concat([Buffer.from([4, 0, 0, 0, 0, 0, 0, 0]), Buffer.from([0x7b, 0x22, 0xff, 0x7d])]));
    expect(await errorOf()).toMatch(/its header is not valid JSON/);
  });

  it("is refused for offsets far beyond its end, before memory is allocated", async () => {
    put({ a: u8(0, 2 ** 52, [2 ** 52]) }, 4);
    expect(await errorOf()).toMatch(/^DIR\/a\.safetensors is incomplete: it has \d+ of 45035996\d+ bytes\./);
  });

  it("gives an error of one line or tensors of the right size, whichever byte of a valid file is changed", async () => {
    await writeSafetensors(
      path,
      [
        ["ab", f32([2], 1, 2)],
        ["c", { dtype: "bool", shape: [2], data: Uint8Array.of(0, 1) }],
      ],
      { k: "v" },
    );
    const good = readFileSync(path);
    let refused = 0;
    for (let at = 0; at < good.length; at++)
      for (const change of [0x01, 0x20, 0x80, 0xff]) {
        const bad = Buffer.from(good);
        bad[at]! ^= change;
        writeFileSync(path, bad);
        try {
          for (const { dtype, shape, data } of (await readSafetensors(path)).values())
            expect(data.byteLength).toBe(elementCount(shape) * elements[dtype].bytes);
        } catch (error) {
          expect(error).toBeInstanceOf(CheckpointError);
          refused++;
        }
      }
    expect(refused).toBeGreaterThan(good.length); // changes of names, metadata and floats are not detected
  });
});

describe("openSafetensors", () => {
  it("reports in one sentence why a file cannot be opened", async () => {
    expect(await errorOf()).toBe("Cannot read DIR/a.safetensors: it does not exist; check the path.");
    path = folder;
    expect(await errorOf()).toBe("Cannot read DIR: it is a folder; name a file.");
    path = "/dev/null/a";
    expect(await errorOf()).toBe(
      "Cannot read /dev/null/a: a part of the path is a file, not a folder; check the path.",
    );
  });
});

describe("writeSafetensors", () => {
  it.each<[string, [string, WritableTensor][], Record<string, string>, string]>([
    [
      "a name twice",
      [
        ["a", f32([])],
        ["a", f32([])],
      ],
      {},
      'tensor "a" is given twice; give each tensor its own name.',
    ],
    [
      "the reserved name",
      [["__metadata__", f32([0])]],
      {},
      'tensor "__metadata__" has a name that the format reserves; choose another name.',
    ],
    [
      "elements that do not fill the shape",
      [["a", f32([3], 1, 2)]],
      {},
      'tensor "a" has 8 bytes, but shape (3) in f32 needs 12; give as many elements as the shape has. The file is as it was before.',
    ],
    [
      "parts that are too many",
      [["a", { dtype: "f32", shape: [3], parts: () => [1, 2].map(() => new Float32Array(2)) }]],
      {},
      'tensor "a" has 16 bytes, but shape (3) in f32 needs 12; give as many elements as the shape has. The file is as it was before.',
    ],
    [
      "an invalid shape",
      [["a", f32([-1])]],
      {},
      'tensor "a" has the shape (-1), but sizes are integers ≥ 0; correct the shape.',
    ],
    [
      "an unsupported dtype",
      [["a", { ...f32([0]), dtype: "u128" as DType }]],
      {},
      'tensor "a" has the dtype u128, which the format does not have; convert it, for example to f32.',
    ],
    [
      "half a byte",
      [["a", { dtype: "f4", shape: [3], data: Uint8Array.of(1, 2) }]],
      {},
      'tensor "a" has the shape (3), which is 1.5 bytes in f4; pad it to whole bytes.',
    ],
    [
      "metadata that is not a string",
      [],
      { a: 1 as unknown as string },
      'its metadata "a" is not a string; convert it to one.',
    ],
  ])("refuses %s and keeps the old file", async (_, tensors, metadata, message) => {
    writeFileSync(path, "old");
    await expect(writeSafetensors(path, tensors, metadata)).rejects.toThrow(
      new CheckpointError(`Cannot write ${path}: ${message}`),
    );
    expect(readFileSync(path, "utf8")).toBe("old");
    expect(readdirSync(folder)).toEqual(["a.safetensors"]);
  });

  it("refuses a header that is longer than the format allows", async () => {
    const metadata = { text: "x".repeat(100_000_000) };
    await expect(writeSafetensors(path, [], metadata)).rejects.toThrow(/its header would have 1000000\d\d bytes/);
    expect(readdirSync(folder)).toEqual([]);
  });
});

describe("repeatedKey", () => {
  it.each([
    ['{"a":1,"b":2}', undefined],
    ['{"a":1,"a":2}', "a"],
    ['{"a":{"a":1},"b":{"a":1}}', undefined],
    ['{"a":[{"b":1},{"b":1}],"c":"a:b"}', undefined],
    ['{"a":"\\"","\\u0061":1}', "a"],
    ['{"x":{"y":[1,{"z":1,"z":2}]}}', "z"],
    ["[]", undefined],
  ])("of %s is %s", (json, key) => expect(repeatedKey(json)).toBe(key));
});
