import { existsSync, lstatSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { runInNewContext } from "node:vm";
import { tensor } from "@terse/tensor";
import { afterAll, describe, expect, it } from "vitest";
import { atomicWriteText } from "./atomic-write.ts";
import { loadModel } from "./load-model.ts";
import { readSafetensors, type Tensors, type WritableTensor, writeSafetensors } from "./safetensors.ts";
import { type SaveOptions, saveModel } from "./save-model.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-written-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const path = join(folder, "a.safetensors");
const write = (tensor: unknown, name: unknown = "a") =>
  writeSafetensors(path, [[name as string, tensor as WritableTensor]]);

const transferred = new Float32Array(2);
structuredClone(transferred, { transfer: [transferred.buffer] });

describe("tensors that cannot be written", () => {
  const ints = Int32Array.of(1, 2);
  it.each<[string, unknown, string]>([
    [
      "integers as f32",
      { dtype: "f32", shape: [2], data: ints },
      "is f32, and its data is an Int32Array; convert it to a Float32Array, or give its own dtype",
    ],
    ["floats of twice the size", { dtype: "f32", shape: [2], data: Float64Array.of(1) }, "its data is a Float64Array"],
    ["floats as i32", { dtype: "i32", shape: [2], data: Float32Array.of(1, 2) }, "convert it to an Int32Array"],
    [
      "an ArrayBuffer",
      { dtype: "f32", shape: [2], data: new ArrayBuffer(8) },
      "its data is no typed array; give a Float32Array",
    ],
    ["a list", { dtype: "i32", shape: [2], data: [1, 2] }, "its data is no typed array; give an Int32Array"],
    ["no data", { dtype: "f32", shape: [2] }, "its data is no typed array"],
    ["no shape", { dtype: "i32", data: ints }, "has no shape"],
    [
      "bools of 2",
      { dtype: "bool", shape: [2], data: Uint8Array.of(1, 2) },
      "is bool, and has a 2; give 0 and 1 alone",
    ],
    ["an array alone", ints, "is no tensor; give a Tensor, or { dtype, shape, data }"],
    ["nothing", undefined, "is no tensor"],
    ["transferred memory", { dtype: "f32", shape: [2], data: transferred }, "its buffer was transferred"],
    [
      "a source's ArrayBuffer",
      { dtype: "f32", shape: [2], toTypedArray: () => new ArrayBuffer(8) },
      "its data is no typed array",
    ],
    ["a source's integers", { dtype: "f32", shape: [2], toTypedArray: () => ints }, "its data is an Int32Array"],
  ])("are refused for %s, and the file is as it was", async (_, given, message) => {
    await write({ dtype: "f32", shape: [], data: Float32Array.of(5) });
    const before = readFileSync(path);
    await expect(write(given)).rejects.toThrow(
      new RegExp(`^Cannot write .*: tensor "a" .*${message.replace(/[{}]/g, "\\$&")}`),
    );
    expect(readFileSync(path)).toEqual(before);
  });

  it("are refused by their names", async () => {
    const given = { dtype: "f32", shape: [], data: Float32Array.of(5) };
    await expect(write(given, 5)).rejects.toThrow(/tensor 5 has a name that is no string/);
    await expect(write(given, "\ud800")).rejects.toThrow(/has half of a surrogate pair in its name/);
  });

  it("are named where they are no pairs, or metadata is no object of strings", async () => {
    const object = { a: tensor([1]) } as unknown as Tensors;
    const pairs =
      /tensors are given as pairs of a name and a tensor; give model\.stateDict\(\), a Map, or Object\.entries/;
    await expect(writeSafetensors(path, object)).rejects.toThrow(pairs);
    await expect(saveModel(join(folder, "m"), object, {})).rejects.toThrow(pairs);
    await saveModel(folder, Object.entries({ a: tensor([1]) }), {});
    await expect(loadModel(folder, { a: tensor([1]) } as never)).rejects.toThrow(pairs);
    for (const metadata of [new Map([["a", "b"]]), null, "text"])
      await expect(writeSafetensors(path, [], metadata as never)).rejects.toThrow(/its metadata is no plain object/);
  });
});

describe("arrays whose bytes are right", () => {
  it.each<[string, WritableTensor]>([
    ["bytes of f32", { dtype: "f32", shape: [2], data: new Uint8Array(Float32Array.of(1, 2).buffer) }],
    ["a Buffer", { dtype: "f32", shape: [2], data: Buffer.from(Float32Array.of(1, 2).buffer) }],
    ["an array of another realm", { dtype: "f32", shape: [2], data: runInNewContext("Float32Array.of(1, 2)") }],
  ])("are written: %s", async (_, given) => {
    await write(given);
    expect((await readSafetensors(path)).get("a")!.data).toEqual(Float32Array.of(1, 2));
  });
});

describe("saveModel", () => {
  it.each<[string, unknown, unknown, RegExp]>([
    ["a config that is missing", undefined, {}, /config\.json: what it would say is no object/],
    ["a shard's size in words", {}, { shardBytes: "5GB" }, /shardBytes is 5GB, and must be a number of bytes/],
    ["shards of nothing", {}, { shardBytes: 0 }, /shardBytes is 0/],
  ])("refuses %s", async (_, config, options, message) => {
    const given = saveModel(join(folder, "refused"), [["a", tensor([1])]], config as never, options as SaveOptions);
    await expect(given).rejects.toThrow(message);
    expect(existsSync(join(folder, "refused", "model.safetensors"))).toBe(false);
  });
});

it("leaves what is no file in its place, such as a device, and a link to one", async () => {
  const link = join(folder, "device");
  symlinkSync("/dev/null", link);
  await expect(atomicWriteText(link, "text")).rejects.toThrow(/is a device, not a file; name a regular file/);
  expect(lstatSync(link).isSymbolicLink()).toBe(true);
});
