import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { needsPython, python } from "../../../tensor/src/testing/python.ts";
import { openTokenizer } from "../tokenizers/tokenizers.ts";
import { headerOf, openTokenFile } from "../tokens/token-file.ts";
import { fetchSource } from "./fetch-source.ts";
import { prepareTokens } from "./prepare-tokens.ts";
import { type PublishedData, type Source, sources } from "./sources.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-prepare-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const tokensIn = async (name: string) => {
  const file = openTokenFile(join(folder, "out", name));
  const tokens = [...file.read(0, file.length)];
  await file.close();
  return tokens;
};

describe("prepareTokens", () => {
  const texts = ["To be, or not to be,", "that is the question:\nWhether 'tis nobler", "in the mind"];
  const options = async (tokenizer = "gpt2") => {
    writeFileSync(join(folder, "texts.jsonl"), texts.map((text) => JSON.stringify({ text })).join("\n"));
    return {
      path: join(folder, "texts.jsonl"),
      out: join(folder, "out"),
      tokenizer: await openTokenizer(tokenizer),
      column: "text",
      validationFraction: 0.25,
    };
  };

  it("writes the tokens of all texts, <|endoftext|> between them, and holds the end out", async () => {
    const given = await options();
    const seen: number[] = [];
    const { files, documents } = await prepareTokens(given, (done, total) => seen.push(done / total!));
    const encoded = await Promise.all(texts.map((text) => given.tokenizer.encode(text)));
    const all = encoded.flatMap((ids, i) => [...(i > 0 ? [50256] : []), ...ids]);
    const heldOutTokens = Math.floor(all.length / 4);
    expect(await tokensIn("train.bin")).toEqual(all.slice(0, -heldOutTokens));
    expect(await tokensIn("val.bin")).toEqual(all.slice(-heldOutTokens));
    expect([documents, files.map(({ tokens }) => tokens)]).toEqual([3, [all.length - heldOutTokens, heldOutTokens]]);
    for (const { path, bytes } of files) expect(readFileSync(path).length).toBe(bytes);
    expect(seen.at(-1)).toBe(1);
    expect(readdirSync(given.out).sort()).toEqual(["train.bin", "val.bin"]);
  });

  it("holds out the files whose names say so, and reads packed ones, and says what it left out", async () => {
    const given = await options("bytes");
    const path = join(folder, "corpus");
    mkdirSync(path);
    writeFileSync(join(path, "corpus-train.txt.gz"), gzipSync("train on this"));
    writeFileSync(join(path, "corpus-dev.txt"), "validate");
    writeFileSync(join(path, "corpus-test.txt"), "test");
    const { files, documents, inventory } = await prepareTokens({ ...given, path });
    expect(Buffer.from(await tokensIn("train.bin")).toString()).toBe("train on this");
    expect(Buffer.from(await tokensIn("val.bin")).toString()).toBe("validate");
    expect([documents, files.map(({ tokens }) => tokens)]).toEqual([2, [13, 8]]);
    expect([inventory.heldOut?.names, inventory.leftOut[0]?.names]).toEqual([["corpus-dev.txt"], ["corpus-test.txt"]]);
    expect(readdirSync(given.out).sort()).toEqual(["train.bin", "val.bin"]);
  });

  it("writes u32 for large vocabularies", async () => {
    const given = await options("bytes");
    const wide = {
      ...given.tokenizer,
      vocabulary: 100_000,
      encode: (text: string) => [...text].map((_, i) => 70_000 + i),
    };
    await prepareTokens({ ...given, tokenizer: wide, validationFraction: 0 });
    expect((await tokensIn("train.bin")).slice(0, 3)).toEqual([70_000, 70_001, 70_002]);
    expect(existsSync(join(given.out, "val.bin"))).toBe(false);
  });

  it("refuses to overwrite, and leaves nothing where a text is wrong", async () => {
    const given = await options();
    writeFileSync(given.path, '{"text": "a"}\n{"body": "b"}\n');
    await expect(prepareTokens(given)).rejects.toThrow(/line 2 has no text in text, only body/);
    expect(readdirSync(given.out)).toEqual([]);
    writeFileSync(join(given.out, "val.bin"), "");
    await expect(prepareTokens(given)).rejects.toThrow(
      /val\.bin is there already; remove it, or name another folder with --out/,
    );
  });
});

describe("fetchSource", () => {
  const content = Buffer.from(Uint8Array.from({ length: 200_000 }, (_, i) => (i * i) >> 3));
  let server: Server;
  let requests: (string | undefined)[] = [];
  let cutAfter = Number.POSITIVE_INFINITY;
  beforeAll(async () => {
    server = createServer((request, response) => {
      requests.push(request.headers.range);
      if (request.url !== "/file") return void response.writeHead(404).end();
      const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? "")?.[1] ?? 0);
      response.writeHead(from > 0 ? 206 : 200, { "content-length": content.length - from });
      const part = content.subarray(from, Math.min(content.length, from + cutAfter));
      response.write(part, () => (part.length < content.length - from ? response.destroy() : response.end()));
    });
    await new Promise<void>((done) => server.listen(0, "127.0.0.1", done));
  });
  afterAll(() => server.close());
  beforeEach(() => {
    requests = [];
    cutAfter = Number.POSITIVE_INFINITY;
  });

  const source = (more: Partial<Source> = {}): Source => ({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/file`,
    file: "data.bin",
    checksum: ["sha256", createHash("sha256").update(content).digest("hex")],
    ...more,
  });

  it("goes on after a cut where it ended, and fetches a file once", async () => {
    cutAfter = 70_000;
    await expect(fetchSource(source(), folder)).rejects.toThrow(
      /was cut off after \d+ bytes: .*; run the same command again/,
    );
    const have = readFileSync(join(folder, "data.bin.partial")).length;
    cutAfter = Number.POSITIVE_INFINITY;
    const seen: [number, number | undefined][] = [];
    expect(await fetchSource(source(), folder, (...at) => seen.push(at))).toBe(join(folder, "data.bin"));
    expect(readFileSync(join(folder, "data.bin")).equals(content)).toBe(true);
    expect(seen.at(-1)).toEqual([content.length, content.length]);
    await fetchSource(source(), folder);
    expect(requests).toEqual([undefined, have > 0 ? `bytes=${have}-` : undefined]);
  });

  it("refuses a file that is not the published one", async () => {
    const other = source({ checksum: ["md5", "0".repeat(32)] });
    await expect(fetchSource(other, folder)).rejects.toThrow(
      /data\.bin\.partial is not the published file: its md5 is \w{32}, not 0{32}; remove it/,
    );
    writeFileSync(join(folder, "data.bin"), "other");
    await expect(fetchSource(source(), folder)).rejects.toThrow(/data\.bin is not the published file/);
  });

  it("names the file and where to put it where there is no network, or no such file", async () => {
    const [unreachable, absent] = [
      source({ url: "http://127.0.0.1:1/file" }),
      source({ url: source().url.replace("file", "no") }),
    ];
    await expect(fetchSource(unreachable, folder)).rejects.toThrow(
      /^Cannot fetch http:\/\/127\.0\.0\.1:1\/file: .+; fetch it on another machine, put it at .*data\.bin, and run the same command again\.$/,
    );
    await expect(fetchSource(absent, folder)).rejects.toThrow(/the server answers 404; fetch it on another machine/);
  });

  it("checks the header of tokens where no checksum is published", async () => {
    const unchecked = { ...source(), file: "shards/one.bin", checksum: undefined } as Source;
    await expect(fetchSource(unchecked, folder)).rejects.toThrow(
      /one\.bin\.partial is not the published file: it has no header of tokens; remove it and fetch/,
    );
    rmSync(join(folder, "shards/one.bin.partial"));
    const shard = join(folder, "shards/one.bin");
    writeFileSync(shard, Buffer.concat([headerOf(5, 2), new Uint8Array(10)]));
    expect(await fetchSource(unchecked, folder)).toBe(shard); // put there by hand
    writeFileSync(shard, Buffer.concat([headerOf(5, 2), new Uint8Array(8)]));
    await expect(fetchSource(unchecked, folder)).rejects.toThrow(
      /one\.bin has 1032 bytes, and its header says 5 tokens/,
    );
    writeFileSync(shard, "");
    await expect(fetchSource(unchecked, folder)).rejects.toThrow(/has no header of tokens/);
    const unreachable = { ...unchecked, url: "http://127.0.0.1:1/one.bin", file: "shards/two.bin" };
    await expect(fetchSource(unreachable, folder)).rejects.toThrow(
      /put it at .*shards\/two\.bin, and run the same command/,
    );
  });

  it.skipIf(needsPython)(`unpacks one folder of a zip archive, and refuses a damaged one${needsPython}`, async () => {
    const script = `
import zipfile, sys
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    archive.writestr("inside/train.tsv", "sentence\\tlabel\\n" * 1000, zipfile.ZIP_DEFLATED)
    archive.writestr("inside/deep/stored.tsv", "stored", zipfile.ZIP_STORED)
    archive.writestr("__MACOSX/inside", "left out")
    archive.writestr("inside/../../outside", "left out") if sys.argv[2] == "outside" else None
`;
    const zipped = (name: string, kind = "") => {
      const path = join(folder, name);
      execFileSync(python!, ["-c", script, path, kind]);
      const sum = () => createHash("sha256").update(readFileSync(path)).digest("hex");
      return { path, source: () => source({ file: name, folder: "inside", checksum: ["sha256", sum()] }) };
    };
    const good = zipped("a.zip");
    const unpacked = await fetchSource(good.source(), folder);
    expect(readFileSync(join(unpacked, "train.tsv"), "utf8")).toBe("sentence\tlabel\n".repeat(1000));
    expect(readFileSync(join(unpacked, "deep/stored.tsv"), "utf8")).toBe("stored");
    expect(readdirSync(folder).sort()).toEqual(["a.zip", "inside"]);
    rmSync(unpacked, { recursive: true });
    const bytes = readFileSync(good.path);
    bytes[bytes.indexOf("stored.tsvstored") + 10]! ^= 1; // of the content, behind the name
    writeFileSync(good.path, bytes);
    await expect(fetchSource(good.source(), folder)).rejects.toThrow(
      /Cannot unpack .*a\.zip: inside\/deep\/stored\.tsv is damaged; unpack it into/,
    );
    await expect(fetchSource(zipped("b.zip", "outside").source(), folder)).rejects.toThrow(
      /Cannot unpack .*b\.zip: it has a file outside of its folder/,
    );
    expect(readdirSync(folder).sort()).toEqual(["a.zip", "b.zip"]);
  });

  it("knows 103 shards of FineWeb, of which the first is held out, and a sum of 64 or 32 digits for all else", () => {
    const { files, inShards } = sources.fineweb;
    expect([files.length, inShards]).toEqual([104, true]);
    expect(files.map(({ file }) => file).slice(0, 2)).toEqual([
      "fineweb10B/fineweb_val_000000.bin",
      "fineweb10B/fineweb_train_000001.bin",
    ]);
    expect(files.at(-1)!.url).toMatch(/fineweb_train_000103\.bin$/);
    for (const { files } of Object.values(sources) as PublishedData[])
      for (const { file, checksum } of files)
        if (checksum === undefined) expect(file).toMatch(/^fineweb10B\//);
        else expect(checksum[1]).toMatch(checksum[0] === "md5" ? /^[0-9a-f]{32}$/ : /^[0-9a-f]{64}$/);
  });

  it("unpacks an archive", async () => {
    const work = mkdtempSync(join(folder, "work-"));
    execFileSync("sh", ["-c", "mkdir inside && echo hello >inside/a && tar -czf ../archive.tar.gz inside"], {
      cwd: work,
    });
    const sum = createHash("md5")
      .update(readFileSync(join(folder, "archive.tar.gz")))
      .digest("hex");
    const archive = source({ file: "archive.tar.gz", folder: "inside", checksum: ["md5", sum] });
    const unpacked = await fetchSource(archive, folder);
    expect(readFileSync(join(unpacked, "a"), "utf8")).toBe("hello\n");
    expect(await fetchSource(archive, folder)).toBe(unpacked);
    expect(requests).toEqual([]);
  });
});
