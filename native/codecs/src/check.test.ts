import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  abi,
  codecs,
  expectedAbi,
  floatAt,
  levels,
  type NativeBuffer,
  NativeMissingError,
  ofThisAbi,
  votes,
} from "./index.ts";

describe("the C codecs", () => {
  it("all do what the scalar ones do", () => {
    const { status, stdout, stderr } = spawnSync(`${import.meta.dirname}/../build/Release/codecs_check`, {
      encoding: "utf8",
    });
    expect(status, stdout + stderr).toBe(0);
    const checked = [...stdout.matchAll(/^([\w-]+ \w+) (\d+) checks$/gm)].map(([, name, checks]) => ({
      name,
      enough: Number(checks) > 1000,
    }));
    const here = [...codecs(), ...votes()].map(({ name, implementation }) => ({
      name: `${name} ${implementation}`,
      enough: true,
    }));
    expect(checked).toEqual(here);
    expect(here.map(({ name }) => name)).toEqual(expect.arrayContaining(["sign scalar", "vote scalar"]));
    const vectorised = levels().filter((level) => level !== "scalar");
    expect([...stdout.matchAll(/^random words by (\w+): \d{3,} checks$/gm)].map(([, name]) => name)).toEqual(
      vectorised,
    );
    expect([...stdout.matchAll(/^reductions by (\w+): \d{3,} checks$/gm)].map(([, name]) => name)).toEqual(levels());
  }, 600_000); // seconds, where nothing else runs
});

describe.each(codecs().filter(({ name }) => name === "sign"))("the binding of $name $implementation", (kernel) => {
  const { wireBytes, encode, decodeAdd } = kernel;
  const x = new Float32Array(16).fill(1);
  const plus = { zero: "plus" } as const;

  it("writes nothing where lengths, types or options are wrong", () => {
    const wire = new Uint8Array(3);
    const right = wire.subarray(1);
    expect(() => encode(wire, x, {}, plus)).toThrow("wire: expected 2 bytes, got 3");
    expect(() => encode(wire.subarray(2), x, {}, plus)).toThrow("wire: expected 2 bytes, got 1");
    expect(() => encode(right, x, {}, { ...plus, hold: wire })).toThrow("hold: expected 2 bytes, got 3");
    expect(() => encode(right, x, {}, { zero: "up" as "plus" })).toThrow("zero");
    expect(() => encode(right, x, {}, {})).toThrow("must be set");
    expect(() => encode(right, x, {}, undefined as never)).toThrow("options");
    expect(() => encode(right, x, { bits: 4 }, plus)).toThrow("does not take");
    expect(() => encode(right, x, { levels: "many" as "uniform" }, plus)).toThrow("levels");
    expect(() => encode(right, x, { segments: [8, -1] }, plus)).toThrow("segments");
    expect(() => encode(right, new Float64Array(16) as never, {}, plus)).toThrow("x: expected f32, got f64");
    expect(() => encode(x as never, x, {}, plus)).toThrow("wire: expected u8, got f32");
    expect(() => decodeAdd(x, wire, {}, { scale: 1 })).toThrow("wire: expected 2 bytes, got 3");
    expect(() => decodeAdd(x, right, {}, { scale: "1" as never })).toThrow("scale");
    expect(() => decodeAdd(x, right, {}, { scale: Number.NaN })).toThrow("finite");
    expect(() => wireBytes(-1, {})).toThrow("n");
    expect(() => wireBytes(1.5, {})).toThrow("n");
    expect([...wire]).toEqual([0, 0, 0]);
  });

  it("refuses memory that is not on the CPU, that no float begins at, or that is used twice", () => {
    expect(() =>
      encode(new Uint8Array(2), { pointer: 4098n, length: 16, dtype: "f32", device: "cpu" }, {}, plus),
    ).toThrow("no multiple of 4");
    const elsewhere: NativeBuffer = { pointer: 4096n, length: 16, dtype: "f32", device: "cuda:0" };
    expect(() => encode(new Uint8Array(2), elsewhere, {}, plus)).toThrow("another device");
    expect(() => encode(new Uint8Array(x.buffer, 8, 2), x, {}, plus)).toThrow("overlap");
  });

  it("reads one float for people, and none outside", () => {
    expect(floatAt(new Float32Array([1, 2.5]), 1)).toBe(2.5);
    expect(() => floatAt(x, 16)).toThrow("i: expected less than 16, got 16");
    expect(() => floatAt(x, -1)).toThrow("i: expected a whole number");
    expect(() => floatAt(new Uint8Array(4) as never, 0)).toThrow("x: expected f32, got u8");
  });

  it("reads arrays over shared memory", () => {
    const shared = new Float32Array(new SharedArrayBuffer(64)).fill(-1);
    const wire = new Uint8Array(new SharedArrayBuffer(2));
    expect(encode(wire, shared, {}, plus)).toBe(16);
    expect([...wire]).toEqual([0, 0]);
  });
});

describe.each(votes())("the binding of vote $implementation", ({ majority, majorityOrZero, tally }) => {
  it("refuses wrong lengths and counts", () => {
    const one = new Uint8Array(1);
    const two = new Uint8Array(2);
    expect(() => majority(one, [two, one], 16, { tie: "plus" })).toThrow("out: expected 2 bytes, got 1");
    expect(() => majority(two, [two, one], 16, { tie: "plus" })).toThrow("votes[1]: expected 2 bytes, got 1");
    expect(() => majority(two, [], 16, { tie: "plus" })).toThrow("1 to 1024 ranks");
    expect(() => majority(two, [null, null], 16, { tie: "plus" })).toThrow("not all of them absent");
    expect(() => majority(two, [two, undefined as never], 16, { tie: "plus" })).toThrow("votes[1]");
    expect(() => tally([two, null as never], [two, null], 16)).toThrow("planes[1]");
    majority(new Uint8Array(0), [new Uint8Array(0)], 0, { tie: "plus" }); // no address, and not absent
    expect(() => majority(two, two as never, 16, { tie: "plus" })).toThrow("votes: expected an array");
    expect(() => majority(two, [two], 16, { tie: "zero" as "plus" })).toThrow("tie");
    expect(() => majorityOrZero(two, one, [two], 16)).toThrow("nonzero: expected 2 bytes, got 1");
    expect(() => tally([two], [two, two], 16)).toThrow("takes 2 planes, not 1");
    expect(() => tally([], [], 16)).toThrow("1 to 1024 ranks");
  });
});

it("has an error where there is not enough memory for a call, and does not end the process", () => {
  const program = `
import { codecs } from ${JSON.stringify(`${import.meta.dirname}/index.ts`)};
const segments = new Array(2 ** 32 - 2); // 34 GB of them in C
try {
  codecs()[0].wireBytes(16, { segments });
} catch (error) {
  console.log(error.message);
}`;
  const limited = `ulimit -v 32000000 && exec "$0" "$@"`;
  const node = [process.execPath, ...process.execArgv, "--input-type=module", "-e", program];
  const { stdout, stderr } = spawnSync("bash", ["-c", limited, ...node], { encoding: "utf8" });
  expect(stdout, stderr).toBe("std::bad_alloc\n");
});

it("is built for the ABI that the header declares", () => {
  expect(abi()).toBe(expectedAbi);
  const header = readFileSync(`${import.meta.dirname}/../../include/terse/codecs.h`, "utf8");
  expect(header).toContain(`#define TERSE_CODECS_ABI ${expectedAbi}\n`);
  const other = () => ofThisAbi({ abi: expectedAbi + 1 });
  expect(other).toThrow(`addon has ABI ${expectedAbi + 1}, and this package speaks ABI ${expectedAbi}: rebuild it`);
  expect(other).toThrow(NativeMissingError);
});
