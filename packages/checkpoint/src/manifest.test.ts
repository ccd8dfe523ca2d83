import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { crc32 } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkFile } from "./check-file.ts";
import type { FileRecord } from "./file-record.ts";
import { manifestFile, parseManifest, readManifestText, sealOf, writeManifest } from "./manifest.ts";
import { type StoredTensor, writeSafetensors } from "./safetensors.ts";
import { saveModel } from "./save-model.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-manifest-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const floats = (name: string, shape: number[], first = 1): [string, StoredTensor] => [
  name,
  { dtype: "f32", shape, data: Float32Array.from({ length: shape[0]! * shape[1]! }, (_, i) => first + i) },
];
const path = (name: string) => join(folder, name);

describe("the record of a file", () => {
  it("has the bytes and the CRC-32 of each file that a model's folder has, and the tensors of its weights", async () => {
    const records = await saveModel(folder, [floats("w", [2, 3])], { width: 3 });
    expect(records.map(({ name }) => name)).toEqual(["config.json", "model.safetensors"]);
    for (const { name, bytes, crc32: sum } of records) {
      const content = readFileSync(path(name));
      expect([bytes, sum]).toEqual([content.length, crc32(content).toString(16).padStart(8, "0")]);
    }
    expect(records[1]!.tensors).toEqual({ w: { dtype: "f32", shape: [2, 3] } });
    for (const record of records) await checkFile(folder, record);
  });

  it("finds every bit that has flipped since", async () => {
    const record = await writeSafetensors(path("a.safetensors"), [floats("w", [2, 3])]);
    const content = readFileSync(path("a.safetensors"));
    for (let bit = 0; bit < 8 * content.length; bit += 7) {
      const flipped = Buffer.from(content);
      flipped[bit >> 3]! ^= 1 << (bit & 7);
      writeFileSync(path("a.safetensors"), flipped);
      await expect(checkFile(folder, record), `bit ${bit}`).rejects.toThrow(/a\.safetensors/);
    }
  });

  it.each<[string, [string, StoredTensor][], RegExp]>([
    ["a transposed shape", [floats("w", [3, 2])], /the tensor w was f32 \(2, 3\) and is f32 \(3, 2\)/],
    [
      "another dtype of the same size",
      [["w", { dtype: "i32", shape: [2, 3], data: Int32Array.of(1, 2, 3, 4, 5, 6) }]],
      /the tensor w was f32 \(2, 3\) and is i32 \(2, 3\)/,
    ],
    ["another name", [floats("v", [2, 3])], /the tensor w was f32 \(2, 3\) and is absent/],
    ["an extra tensor", [floats("w", [2, 3]), floats("x", [1, 1])], /bytes, and \d+ were saved/],
  ])("names %s", async (_, tensors, message) => {
    const record = await writeSafetensors(path("a.safetensors"), [floats("w", [2, 3])]);
    await writeSafetensors(path("a.safetensors"), tensors);
    await expect(checkFile(folder, record)).rejects.toThrow(message);
  });

  it("says that files of one save were swapped", async () => {
    const records: FileRecord[] = [];
    for (const rank of [0, 1])
      records.push(await writeSafetensors(path(`state-rank-${rank}.safetensors`), [floats("m", [2, 3], rank)]));
    renameSync(path("state-rank-1.safetensors"), path("state-rank-0.safetensors"));
    await expect(checkFile(folder, records[0]!, records)).rejects.toThrow(
      `${path("state-rank-0.safetensors")} has the content of state-rank-1.safetensors: the files were swapped; rename them.`,
    );
  });

  it("names a file that is missing", async () => {
    const record = { name: "a", bytes: 1, crc32: "00000000" };
    await expect(checkFile(folder, record)).rejects.toThrow(
      `Cannot read ${path("a")}: it does not exist; check the path.`,
    );
  });
});

describe("a manifest", () => {
  const manifest = {
    step: 30,
    files: [{ name: "a.safetensors", bytes: 3, crc32: "01234567" }],
    more: { 10: 1, 9: [] },
  };

  it("is read as it was written", async () => {
    expect(readManifestText(folder)).toBeUndefined();
    await writeManifest(folder, manifest);
    expect(parseManifest(readManifestText(folder)!, "here")).toEqual(manifest);
  });

  it("has the version of its layout: one without is of the first, and another one is refused, whatever its checksum is of", async () => {
    await writeManifest(folder, manifest);
    const written = JSON.parse(readFileSync(path(manifestFile), "utf8"));
    expect(written.version).toBe(1);
    const first = { ...manifest, crc32: sealOf(manifest) };
    expect(parseManifest(JSON.stringify(first), "here")).toEqual(manifest);
    for (const other of [
      { ...written, version: 2 },
      { version: 2, parts: [] },
    ])
      expect(() => parseManifest(JSON.stringify(other), "R/step-30/manifest.json")).toThrow(
        "R/step-30/manifest.json is of version 2 of saves, and this terse reads version 1; use the terse that wrote it, or an export of its model.",
      );
  });

  it("is refused when a character of it has changed, or when it is cut short", async () => {
    await writeManifest(folder, manifest);
    const text = readFileSync(path(manifestFile), "utf8");
    for (const changed of [
      text.replace("30", "-1"),
      text.replace('"bytes":3', '"bytes":4'),
      text.slice(0, 40),
      "",
      "[]",
      "null",
    ])
      expect(() => parseManifest(changed, "R/step-30/manifest.json")).toThrow(
        "R/step-30/manifest.json was changed or damaged after it was saved; use an earlier save.",
      );
  });

  it.each(["../a", "/etc/a", "..", ".a", "a/b/c", "a/../b", "../b/c", ""])(
    "is refused when it names the file %j",
    async (name) => {
      await writeManifest(folder, { files: [{ ...manifest.files[0]!, name }] });
      expect(() => parseManifest(readManifestText(folder)!, "here")).toThrow(
        /^here names the file .*not in its folder/,
      );
    },
  );
});
