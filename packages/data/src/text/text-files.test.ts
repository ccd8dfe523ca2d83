import { execFileSync } from "node:child_process";
import { chmodSync, linkSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative } from "node:path";
import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { DataError } from "../data-error.ts";
import { bytesOfFiles } from "./bytes-of-files.ts";
import { textFiles } from "./text-files.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-data-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

function put(path: string, content: string | Uint8Array): string {
  const full = join(folder, path);
  mkdirSync(dirname(full), { recursive: true });
  writeFileSync(full, content);
  return full;
}
const bytesAt = async (path: string) => {
  const text = await bytesOfFiles(path, (await textFiles(path, "bytes")).training);
  const bytes = Uint8Array.from(await text.read(0, text.length));
  await text.close!();
  return bytes;
};
const textAt = async (path: string) => Buffer.from(await bytesAt(path)).toString();

async function errorOf(path: string): Promise<string> {
  const error = await bytesAt(path).then(
    () => undefined,
    (error) => error,
  );
  expect(error).toBeInstanceOf(DataError);
  expect(error.message).not.toContain("\n");
  return error.message.replaceAll(folder, "DIR");
}

describe("the bytes of text files", () => {
  it("reads a single file as it is, also if it is not text", async () => {
    const bytes = Uint8Array.of(0, 255, 10, 0, 13);
    expect(await bytesAt(put("a.dat", bytes))).toEqual(bytes);
  });

  it("are those of a folder in the order of paths, with a newline between two files", async () => {
    put("b.txt", "two");
    put("B.txt", "one\n");
    put("b/z.txt", "deeper");
    put("b/a.md", "deep\n");
    put("é.txt", "last");
    put("z.txt", "z\n");
    // Code units: B (66) < b (98) < z (122) < é (233). A folder is ordered by its own name.
    expect(await textAt(folder)).toBe("one\n\ndeep\n\ndeeper\ntwo\nz\n\nlast");
  });

  it("skips binary files, empty files and names that start with a dot", async () => {
    put("a.txt", "text");
    put("b.bin", Uint8Array.of(65, 0, 66));
    put("c.txt", "");
    put(".git/config", "hidden");
    put(".hidden", "hidden");
    put("latin1.txt", Uint8Array.of(0xe9, 10)); // not UTF-8, but text
    expect(await bytesAt(folder)).toEqual(new Uint8Array(Buffer.from([...Buffer.from("text\n"), 0xe9, 10])));
  });

  it("reads a file or folder once if several links lead to it, also in cycles", async () => {
    put("a/one.txt", "1");
    symlinkSync("one.txt", join(folder, "a/same.txt"));
    symlinkSync("a", join(folder, "b"));
    symlinkSync("..", join(folder, "a/up"));
    expect(await textAt(folder)).toBe("1");
  });

  it("follows links out of the folder", async () => {
    put("elsewhere/x.txt", "x");
    mkdirSync(join(folder, "data"));
    symlinkSync("../elsewhere", join(folder, "data/link"));
    expect(await textAt(join(folder, "data"))).toBe("x");
  });

  it("reads every hard link, so that copies of a folder give the same bytes", async () => {
    linkSync(put("a.txt", "a\n"), join(folder, "b.txt"));
    expect(await textAt(folder)).toBe("a\n\na\n");
  });

  it.each([
    ["", "The data path is empty; name a file or a folder with data."],
    ["  ", "The data path is empty; name a file or a folder with data."],
  ])("refuses %j", async (path, message) => expect(await errorOf(path)).toBe(message));

  it("reports what is wrong and what to do", async () => {
    expect(await errorOf(join(folder, "no"))).toBe(
      "There is no file or folder at DIR/no; check the data path, or name your own data with --data PATH.",
    );
    put("empty.txt", "");
    expect(await errorOf(join(folder, "empty.txt"))).toBe("The file DIR/empty.txt is empty; name one that is not.");
    expect(await errorOf(folder)).toBe(
      "There is no text file in DIR or the folders below it (empty.txt is empty); name a folder with text in it.",
    );
    put("rows/a.txt", "text");
    await expect(textFiles(join(folder, "rows"), "rows")).rejects.toThrow(
      /no \.jsonl, \.json or \.parquet file of rows in .*rows or the folders below it \(a\.txt is none\); name one, or/,
    );
    rmSync(join(folder, "rows"), { recursive: true });
    expect(await errorOf("https://x.org/a.txt")).toBe(
      "There is no file or folder at https://x.org/a.txt; data is not fetched: download it, and name the file.",
    );
    put("a.txt", "abc");
    expect(await errorOf(join(folder, "a.txt/b"))).toBe(
      "Cannot read DIR/a.txt/b: a part of the path is a file, not a folder; make it readable, or remove it from the data path.",
    );
    symlinkSync("nothing", join(folder, "link"));
    expect(await errorOf(folder)).toBe("DIR/link is a broken link; remove it, or create its target.");
    rmSync(join(folder, "link"));
    const latin1 = Buffer.concat([Buffer.from(`${folder}/caf`), Uint8Array.of(0xe9)]);
    writeFileSync(latin1, "abc");
    expect(await errorOf(folder)).toBe("Cannot read DIR/caf\ufffd: its name is not UTF-8; rename it.");
    rmSync(latin1);
    symlinkSync("circle", join(folder, "circle"));
    expect(await errorOf(folder)).toBe(
      "Cannot read DIR/circle: its symbolic links form a cycle; make it readable, or remove it from the data path.",
    );
  });

  it.skipIf(process.platform === "win32")("refuses a device, without reading from it", async () => {
    expect(await errorOf("/dev/null")).toBe(
      "/dev/null is neither a file nor a folder; copy its content into a file and name that.",
    );
  });

  it.skipIf(process.platform === "win32")("reports a file without read permission", async () => {
    const file = put("a/secret.txt", "x");
    chmodSync(folder, 0o755);
    chmodSync(file, 0);
    const root = process.getuid?.() === 0; // root may read every file, so the test changes to the user nobody
    if (root) process.seteuid?.(65534);
    try {
      for (const path of [folder, file])
        expect(await errorOf(path)).toMatch(
          /^Cannot read DIR\/a\/secret\.txt: permission denied; make it readable, or /,
        );
    } finally {
      if (root) process.seteuid?.(0);
    }
  });

  it("are the same from more files than are open at once, at every place", async () => {
    for (let i = 0; i < 200; i++) put(`${1000 + i}.txt`, `file ${i}`.repeat(1 + (i % 3)));
    const whole = await textAt(folder);
    const text = await bytesOfFiles(folder, (await textFiles(folder, "bytes")).training);
    for (let at = 0; at + 50 < text.length; at += 37)
      expect(Buffer.from(Uint8Array.from(await text.read(at, 50))).toString()).toBe(whole.slice(at, at + 50));
    await text.close!();
  });
});

describe("what is read of a folder", () => {
  const lines = ["one", "two"].map((text) => `${JSON.stringify({ text })}\n`).join("");
  const names = (files: readonly { readonly path: string }[]) => files.map(({ path }) => relative(folder, path));
  const found = async (readAs: "bytes" | "texts", column?: string) => {
    const { training, heldOut, inventory, ...rest } = await textFiles(folder, readAs, column);
    const left = Object.fromEntries(inventory.leftOut.map(({ why, names }) => [why, names]));
    return { training: names(training), heldOut: names(heldOut), left, ...rest };
  };

  it("is held out by its name, and the test split is left out beside a validation split", async () => {
    put("stories-train.txt", "a");
    put("stories-valid.txt.gz", gzipSync("b"));
    put("test/a.txt", "c");
    put("notes.md", "d");
    expect(await found("bytes")).toMatchObject({
      training: ["notes.md", "stories-train.txt"],
      heldOut: ["stories-valid.txt.gz"],
      left: { "the test split": ["test/a.txt"] },
    });
    rmSync(join(folder, "stories-valid.txt.gz"));
    expect(await found("texts")).toMatchObject({ heldOut: ["test/a.txt"], left: {} });
    rmSync(join(folder, "stories-train.txt"));
    rmSync(join(folder, "notes.md"));
    await expect(found("bytes")).rejects.toThrow(
      /has only held-out files \(test\/a\.txt is one by its name\); add the files/,
    );
  });

  it("is not held out by its name among programs, where test is a topic; one program beside a text changes nothing", async () => {
    put("src/eval.py", "print(1)\n".repeat(50));
    put("src/a.test.ts", "it()\n".repeat(50));
    put("test/data.txt", "small");
    expect(await found("bytes")).toMatchObject({ heldOut: [], left: {} });
    put("train.txt", "a".repeat(5000));
    expect(await found("bytes")).toMatchObject({
      training: ["train.txt"],
      heldOut: ["src/a.test.ts", "src/eval.py", "test/data.txt"],
    });
  });

  it("are its files with columns where texts are read, and all its text as bytes; endings count in capitals too", async () => {
    put("A.JSONL", lines);
    put("b.jsonl.gz", gzipSync(lines));
    put("c.CSV", "text\nthree\n");
    put("d.jsonlines", lines);
    put("README.md", "read me");
    put("package.json", "{}");
    const beside = "not read beside files with columns";
    expect(await found("texts")).toEqual({
      training: ["A.JSONL", "b.jsonl.gz", "c.CSV", "d.jsonlines"],
      heldOut: [],
      left: { [beside]: ["README.md", "package.json"] },
      column: "text",
      remarks: [],
    });
    expect(await found("bytes")).toMatchObject({
      training: ["A.JSONL", "README.md", "b.jsonl.gz", "c.CSV", "d.jsonlines", "package.json"],
      column: undefined,
      remarks: [
        expect.stringContaining("A.JSONL is read as it is, with its keys and separators; data.column: text reads"),
      ],
    });
    expect(await found("bytes", "text")).toMatchObject({ left: { [beside]: ["README.md"] }, column: "text" });
  });

  it("of json beside other text is text, and data where there is no other", async () => {
    put("a.json", "[]");
    put("a.ts", "a");
    expect((await textFiles(folder, "texts")).training.map(({ form }) => form)).toEqual(["plain", "plain"]);
    rmSync(join(folder, "a.ts"));
    expect((await textFiles(folder, "texts")).training.map(({ form }) => form)).toEqual(["json"]);
  });

  it("is said where it is not read, and why", async () => {
    put("a.txt", "a");
    put("b.txt.xz", Buffer.from("fd377a585a000004", "hex"));
    put("c.txt", "");
    put("d.dat", Uint8Array.of(1, 0, 2));
    put("e.txt", Buffer.from("\uFEFFabc", "utf16le"));
    put("f.txt.gz", "not packed");
    symlinkSync("a.txt", join(folder, "g.txt"));
    put("h.parquet", "PAR1");
    const left = {
      "packed by xz, which is not read, as gzip and zstd are: unpack it with unxz -k": ["b.txt.xz"],
      empty: ["c.txt"],
      "no text, but has zero bytes": ["d.dat"],
      "no gzip file, as its name says: fetch it again, or rename it": ["f.txt.gz"],
      "the same file as a.txt": ["g.txt"],
    };
    expect(await found("bytes")).toMatchObject({
      training: ["a.txt"],
      left: {
        ...left,
        "UTF-16, not read as bytes: convert it with iconv": ["e.txt"],
        "not read beside text": ["h.parquet"],
      },
    });
    rmSync(join(folder, "h.parquet"));
    expect(await found("texts")).toMatchObject({ training: ["a.txt", "e.txt"], left });
  });

  it.skipIf(process.platform === "win32")("is never a pipe or a device, nor waits for one", async () => {
    put("a.txt", "a");
    execFileSync("mkfifo", [join(folder, "pipe.txt")]);
    symlinkSync("pipe.txt", join(folder, "link.jsonl"));
    symlinkSync("/dev/zero", join(folder, "zero.txt"));
    expect(await found("bytes")).toMatchObject({
      training: ["a.txt"],
      left: { "no regular file": ["link.jsonl", "pipe.txt", "zero.txt"] },
    });
    await expect(textFiles(join(folder, "pipe.txt"), "bytes")).rejects.toThrow(
      /pipe\.txt is neither a file nor a folder/,
    );
  });
});

describe("a dataset of Hugging Face", () => {
  const describing = (path: string) => put(path, '{"splits": ["train"]}');

  it("that was saved as Arrow is refused, and not what describes it read", async () => {
    put("train/data-00000-of-00001.arrow", Uint8Array.of(255, 255, 255, 255, 16, 1, 0, 0));
    for (const name of ["dataset_dict.json", "train/dataset_info.json", "train/state.json"]) describing(name);
    const refusal = /in .* \(train\/data-0.*\.arrow is an Arrow file, which is not read as text: write it as parquet/;
    for (const readAs of ["bytes", "texts", "rows"] as const)
      await expect(textFiles(folder, readAs)).rejects.toThrow(refusal);
    await expect(textFiles(folder, "bytes", "text")).rejects.toThrow(refusal);
  });

  it("is read without what describes it, also where a column is named", async () => {
    describing("dataset_infos.json");
    put("data/train-00000-of-00001.parquet", "PAR1");
    put("more.json", "[]");
    const { training, inventory } = await textFiles(folder, "texts", "content");
    expect(training.map(({ path }) => relative(folder, path))).toEqual([
      "data/train-00000-of-00001.parquet",
      "more.json",
    ]);
    expect(inventory.leftOut).toMatchObject([{ names: ["dataset_infos.json"], why: "a description of the dataset" }]);
  });
});

describe("a single file", () => {
  it("that is packed gives the bytes inside", async () => {
    expect(await textAt(put("a.txt.gz", gzipSync("inside")))).toBe("inside");
    const path = put("a.tar.gz", gzipSync(Buffer.alloc(1024)));
    expect(await errorOf(path)).toBe("DIR/a.tar.gz is no text, but has zero bytes.");
  });

  it("of UTF-16 is remarked on where its bytes are read", async () => {
    const path = put("a.txt", Buffer.from("\uFEFFabc", "utf16le"));
    expect((await textFiles(path, "bytes")).remarks).toEqual([
      `data: ${path} is UTF-16, and its bytes are read as they are; iconv -f UTF-16 -t UTF-8 makes half as many`,
    ]);
    expect((await textFiles(path, "texts")).remarks).toEqual([]);
  });

  it("that is no text is remarked on where its bytes are read", async () => {
    const path = put("a.txt", Buffer.from("abcdefgh", "utf16le"));
    const why =
      "UTF-16 without a byte order mark, which is not read as text: convert it with iconv -f UTF-16LE -t UTF-8";
    expect((await textFiles(path, "bytes")).remarks).toEqual([
      `data: ${path} is ${why}; its bytes are read as they are`,
    ]);
    expect((await textFiles(put("a.bin2", "\x01\0"), "bytes")).remarks).toEqual([
      expect.stringContaining("a.bin2 is no text, but has zero bytes; its bytes are read as they are"),
    ]);
  });

  it("that would fill the memory once it is unpacked is refused", async () => {
    const path = put("bomb.txt.gz", gzipSync(Buffer.alloc(8 << 20, "a")));
    vi.spyOn(process, "availableMemory").mockReturnValue(10 << 20);
    expect(await errorOf(path)).toMatch(
      /^DIR\/bomb\.txt\.gz has more than 4 MB of content, too much for memory; unpack it/,
    );
    vi.restoreAllMocks();
  });
});
