import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Codec } from "./codec.ts";
import { codecNamed, codecs } from "./codecs.ts";
import { crc32c } from "./crc32c.ts";
import { type BadFrame, BadFrameError, readFrame, writeFrame } from "./frame.ts";
import { goldenFrames } from "./testing/golden-frames.ts";
import { fromHex, toHex } from "./testing/hex.ts";
import { random } from "./testing/inputs.ts";

const golden = goldenFrames();
const frames = golden.map(({ frame }) => fromHex(frame));
const framesPy = `${import.meta.dirname}/../frames.py`;
const noPython = spawnSync("python3", ["--version"]).error ? " (skipped: there is no python3)" : "";
const reader = `${import.meta.dirname}/../../../native/codecs/build/Release/codecs_mutate`;
const noReader = existsSync(reader) ? "" : " (skipped: the native codecs are not built)";

/** What the reader makes of it. */
function verdict(bytes: Uint8Array): BadFrame | "read" {
  try {
    readFrame(bytes);
    return "read";
  } catch (error) {
    if (error instanceof BadFrameError) return error.reason;
    throw error;
  }
}

function sealed(bytes: Uint8Array, end = bytes.length - 4): Uint8Array {
  const copy = bytes.slice();
  new DataView(copy.buffer).setUint32(end, crc32c(copy.subarray(0, end)), true);
  return copy;
}

const changed = (bytes: Uint8Array, at: number, ...values: number[]): Uint8Array => {
  const copy = bytes.slice();
  copy.set(values, at);
  return copy;
};

describe("CRC-32C", () => {
  it.each([
    // The check value of the CRC catalogue, and RFC 3720, B.4.
    ["123456789", new TextEncoder().encode("123456789"), 0xe3069283],
    ["nothing", new Uint8Array(), 0],
    ["32 zeros", new Uint8Array(32), 0x8a9136aa],
    ["32 bytes of ones", new Uint8Array(32).fill(255), 0x62a8ab43],
    ["0 to 31", Uint8Array.from({ length: 32 }, (_, i) => i), 0x46dd794e],
    ["31 to 0", Uint8Array.from({ length: 32 }, (_, i) => 31 - i), 0x113fdb5c],
  ])("of %s is the published one", (_, bytes, expected) => {
    expect(crc32c(bytes)).toBe(expected);
  });
});

describe("frames", () => {
  it.each(golden)("of $codec, n = $n, $parameters, are the golden bytes, and say what went in", (vector) => {
    const codec = codecNamed(vector.codec, vector.parameters);
    expect(toHex(writeFrame(codec, fromHex(vector.wire), vector.n))).toBe(vector.frame);
    const read = readFrame(fromHex(vector.frame));
    expect([read.codec.name, read.n, toHex(read.wire)]).toEqual([vector.codec, vector.n, vector.wire]);
    expect({ ...read.codec.parameters, ranks: undefined }).toEqual({ ...vector.parameters, ranks: undefined });
    expect(read.codec.parameters.ranks ?? 1).toBe(vector.parameters.ranks ?? 1);
    expect(read.bytes).toBe(vector.frame.length / 2);
  });

  it.each(Object.keys(codecs))("are golden for %s, and docs/wire-formats.md has its row", (name) => {
    const some = golden.filter(({ codec }) => codec === name);
    expect(some, "python3 packages/codecs/frames.py writes them").not.toEqual([]);
    const lines = readFileSync(`${import.meta.dirname}/../../../docs/wire-formats.md`, "utf8").split("\n");
    const row = (codec: string) => `| [\`${codec}\`](../packages/codecs/src/codecs/${codec}/README.md) | `;
    const rows = [...lines.keys()].filter((i) => /^\| \[`.*\/codecs\/src\/codecs\//.test(lines[i]!));
    const at = rows.find((i) => lines[i]! >= row(name)) ?? rows.at(-1)! + 1;
    const missing = `docs/wire-formats.md:${at + 1}: ${row(name)}bytes for n floats | what they are |`;
    expect(lines[at]!.startsWith(row(name)), missing).toBe(true);
  });

  it.skipIf(noPython)(`are what Python's struct reads in them${noPython}`, () => {
    const check = spawnSync("python3", [framesPy, "--check"], { encoding: "utf8" });
    expect(check.stdout + check.stderr).toBe(`${golden.length} frames, 0 bad\n`);
    const read = spawnSync("python3", [framesPy, "--read"], {
      input: golden
        .map(({ codec, n, parameters, wire }) => toHex(writeFrame(codecNamed(codec, parameters), fromHex(wire), n)))
        .join("\n"),
      encoding: "utf8",
    });
    expect(read.stderr).toBe("");
    const said = read.stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(said).toEqual(golden.map(({ frame, ...rest }) => rest));
  });

  it("may follow one another", () => {
    const all = new Uint8Array(Buffer.concat(frames));
    let at = 0;
    for (const { codec, n } of golden) {
      const frame = readFrame(all.subarray(at));
      expect([frame.codec.name, frame.n]).toEqual([codec, n]);
      at += frame.bytes;
    }
    expect(at).toBe(all.length);
  });

  it("hand out the wire without copying it, and it decodes", () => {
    const sign = codecNamed("sign");
    const wire = new Uint8Array(2);
    sign.encode(
      wire,
      Float32Array.from({ length: 11 }, (_, i) => (i % 3 === 0 ? 1 : -1)),
      { zero: "plus" },
    );
    const frame = writeFrame(sign, wire, 11);
    const read = readFrame(frame);
    expect(read.wire.buffer).toBe(frame.buffer);
    const sum = new Float32Array(read.n);
    read.codec.decodeAdd(sum, read.wire);
    expect([...sum]).toEqual(Array.from({ length: 11 }, (_, i) => (i % 3 === 0 ? 1 : -1)));
  });

  it("are not written around a wire of another length, a strange n or a strange codec", () => {
    const sign = codecNamed("sign");
    expect(() => writeFrame(sign, new Uint8Array(2), 17)).toThrow("wire has 2 bytes, and 17 floats take 3");
    expect(() => writeFrame(sign, new Uint8Array(2), 2 ** 49)).toThrow("n is 562949953421312");
    expect(() => writeFrame(sign, new Uint8Array(2), -1)).toThrow("n is -1");
    for (const wrong of [new Float32Array(2), new Int8Array(2), [1, 2]])
      expect(() => writeFrame(sign, wrong as never, 16)).toThrow("wire must be a Uint8Array");
    expect(() => writeFrame(undefined as never, new Uint8Array(2), 16)).toThrow(RangeError);
    expect(() => writeFrame({ ...sign, name: "mine" } as Codec, new Uint8Array(2), 16)).toThrow('a codec "mine"');
  });
});

describe("a frame that is refused", () => {
  const good = frames.find((_, i) => golden[i]!.codec === "sign" && golden[i]!.n > 0)!;

  const refused: [string, BadFrame, RegExp, Uint8Array][] = [
    ["nothing", "not a frame", /not a frame/, new Uint8Array()],
    ["another file", "not a frame", /not a frame/, new TextEncoder().encode("%PDF-1.7 and so on")],
    ["four bytes of one", "cut short", /there are 4 bytes/, good.subarray(0, 4)],
    ["another version", "another version", /of version 2, and this library reads 1/, changed(good, 4, 2)],
    ["half a header", "cut short", /a header and a checksum of 92, and there are 60/, good.subarray(0, 60)],
    ["all but a byte", "cut short", /a wire of 5/, good.subarray(0, good.length - 1)],
    ["one wrong byte", "damaged", /checksum/, changed(good, 89, 0xee)],
    ["too many segments", "cut short", /4294967295 segments/, changed(good, 76, 255, 255, 255, 255)],
    ["a wire of 2^64 - 1", "cut short", /cut short/, changed(good, 80, ...new Array(8).fill(255))],
    ["a name of 16 letters", "bad header", /no name/, sealed(changed(good, 8, ...new Array(16).fill(97)))],
    ["letters behind the name", "bad header", /no name/, sealed(changed(good, 20, 97))],
    ["no name", "bad header", /no name/, sealed(changed(good, 8, 0, 0, 0, 0))],
    ["more floats than 2^48", "bad header", /n is beyond/, sealed(changed(good, 30, 2))],
    ["ranks as no writer says one", "bad header", /ranks is 1/, sealed(changed(good, 40, 1))],
    ["unscaled by 2", "bad header", /unscaled is 2/, sealed(changed(good, 44, 2))],
    ["levels of a fourth kind", "bad header", /levels is 3/, sealed(changed(good, 48, 3))],
    ["a clip of NaN", "bad header", /clip/, sealed(changed(good, 72, 0, 0, 0xc0, 0x7f))],
    ["a clip of -0", "bad header", /clip/, sealed(changed(good, 72, 0, 0, 0, 0x80))],
    ["a codec of tomorrow", "unknown codec", /no codec "ight"/, sealed(changed(good, 8, ...Buffer.from("ight\0")))],
    ["a codec of JavaScript", "unknown codec", /"toString"/, sealed(changed(good, 8, ...Buffer.from("toString")))],
    [
      "parameters it does not take",
      "refused parameters",
      /sign refuses.*no parameters, not k/,
      sealed(changed(good, 64, 1)),
    ],
    [
      "fewer floats than its wire",
      "wrong length",
      /5 bytes, and 8 floats of sign take 1/,
      sealed(changed(good, 24, 8)),
    ],
  ];

  it.each(refused)("%s: %s", (_, reason, sentence, bytes) => {
    expect(() => readFrame(bytes)).toThrow(sentence);
    expect(verdict(bytes)).toBe(reason);
  });

  it("is one with any single bit flipped, and one that is cut anywhere", () => {
    for (const frame of frames) {
      for (let bit = 0; bit < 8 * frame.length; bit++) {
        expect(verdict(changed(frame, bit >> 3, frame[bit >> 3]! ^ (1 << (bit & 7)))), `bit ${bit}`).not.toBe("read");
      }
      for (let length = 0; length < frame.length; length++)
        expect(verdict(frame.subarray(0, length))).toBe(length < 4 ? "not a frame" : "cut short");
    }
  });

  it("is one that claims 2^31 floats, or 2^48, and no memory is asked for them", () => {
    for (const frame of frames) {
      expect(verdict(sealed(changed(frame, 24, 0, 0, 0, 0x80, 0, 0, 0, 0)))).not.toBe("read");
      expect(verdict(sealed(changed(frame, 24, 0, 0, 0, 0, 0, 0, 1, 0)))).not.toBe("read");
    }
  });

  it("never throws anything else, and what is read is written the same, over 100 000 mutations", () => {
    const verdicts = new Map<string, number>();
    for (const bytes of mutations(100_000)) {
      const what = verdict(bytes);
      verdicts.set(what, (verdicts.get(what) ?? 0) + 1);
      if (what !== "read") continue;
      const { codec, n, wire, bytes: length } = readFrame(bytes);
      expect(toHex(writeFrame(codec, wire, n))).toBe(toHex(bytes.subarray(0, length)));
    }
    expect([...verdicts.keys()].sort()).toEqual([
      "another version",
      "bad header",
      "cut short",
      "damaged",
      "not a frame",
      "read",
      "refused parameters",
      "unknown codec",
      "wrong length",
    ]);
  });

  it.skipIf(noReader)(`is refused by the C reader, and for the same reason${noReader}`, () => {
    const some = [...frames, ...refused.map(([, , , bytes]) => bytes), ...mutations(20_000)];
    const { stdout, stderr, status } = spawnSync(reader, ["--read"], {
      input: some.map((bytes) => `${toHex(bytes)}\n`).join(""),
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    expect(status, stderr).toBe(0);
    const lines = stdout.trim().split("\n");
    expect(lines.length).toBe(some.length);
    lines.forEach((line, i) => {
      const [code, ...read] = line.split(" ");
      const mine = verdict(some[i]!);
      expect(reasonOf(Number(code)), `${toHex(some[i]!)}: ${mine}`).toBe(mine);
      if (mine !== "read") return;
      const { codec, n, wire } = readFrame(some[i]!);
      expect(read).toEqual([codec.name, String(n), toHex(wire)]);
    });
  });
});

/** terse_codec_status, as terse_frame_read returns it. */
function reasonOf(status: number): BadFrame | "read" {
  const reasons: Record<number, BadFrame | "read"> = {
    0: "read",
    1: "unknown codec",
    5: "wrong length",
    21: "not a frame",
    22: "another version",
    23: "cut short",
    24: "damaged",
    25: "bad header",
  };
  return reasons[status] ?? "refused parameters";
}

/**
 * Frames damaged by chance and by malice: flipped bits, cuts, lengths that lie, parts of others; most with a checksum
 * that fits.
 */
function* mutations(count: number): Generator<Uint8Array> {
  const next = random(20263);
  const below = (bound: number): number => Math.floor(next() * bound);
  const fields = [4, 8, 24, 28, 30, 32, 34, 36, 40, 44, 48, 52, 56, 60, 64, 68, 72, 76, 80, 84, 88, 92, 96];
  const awkward = [0, 1, 2, 3, 7, 8, 31, 32, 33, 64, 255, 256, 0x7fff_ffff, 0x8000_0000, 0xffff_fff8, 0xffff_ffff];
  for (let i = 0; i < count; i++) {
    const frame = frames[below(frames.length)]!;
    let bytes = new Uint8Array(frame.length + below(2) * below(24));
    bytes.set(frame);
    for (let times = 1 + below(2); times > 0; times--) {
      const kind = below(6);
      if (kind === 0 && bytes.length > 0) bytes[below(bytes.length)]! ^= 1 << below(8);
      else if (kind === 1) bytes = bytes.slice(0, below(bytes.length + 1));
      else if (kind === 2 && bytes.length > 0) bytes[below(Math.min(bytes.length, 112))] = below(256);
      else if (kind === 3) bytes.set(frames[below(frames.length)]!.subarray(0, Math.min(bytes.length, below(112))));
      else {
        const field = fields[below(fields.length)]!;
        if (field + 4 <= bytes.length)
          new DataView(bytes.buffer).setUint32(field, awkward[below(awkward.length)]!, true);
      }
    }
    yield below(4) > 0 ? sealedWhereItSays(bytes) : bytes;
  }
}

/** The frame with the right checksum, at the place that its own lengths give. */
function sealedWhereItSays(bytes: Uint8Array): Uint8Array {
  if (bytes.length < 92) return bytes;
  const view = new DataView(bytes.buffer);
  const end = 88 + 8 * view.getUint32(76, true) + view.getUint32(80, true) + 2 ** 32 * view.getUint32(84, true);
  return end + 4 <= bytes.length ? sealed(bytes, end) : bytes;
}
