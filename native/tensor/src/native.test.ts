import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { native, TensorDisposedError, TensorError } from "./index.ts";

const full = native.find("aten::full");
const add = native.find("aten::add.Tensor");
const tensor = (value: number) => native.call(full, [2], value, "f32") as number;

describe("handles", () => {
  it("that were never created are refused, of any type", () => {
    for (const forged of [
      0,
      1,
      -1,
      0.5,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 53,
      2 ** 60,
      "1",
      null,
      undefined,
      {},
      1n,
    ])
      expect(() => native.shape(forged as never), String(forged)).toThrow(TypeError);
    // These have the form of handles, but their slots and generations do not exist.
    for (const forged of [2 ** 24 + 10_000_000, 2 ** 52 + 3])
      expect(() => native.shape(forged)).toThrow(TensorDisposedError);
  });

  it("of disposed tensors stay refused after their slot was reused many times", () => {
    const first = tensor(1);
    native.dispose(first);
    for (let i = 0; i < 3000; i++) native.dispose(tensor(i));
    const last = tensor(7);
    expect(() => native.item(first)).toThrow(TensorDisposedError);
    expect(native.shape(last)).toEqual([2]);
    native.dispose(last);
  });

  it("can be disposed twice, and numbers that are no handles can be disposed", () => {
    const before = native.memory();
    const x = tensor(1);
    native.dispose(x);
    native.dispose(x);
    native.dispose(Number.NaN);
    native.disposeAll(Float64Array.of(x, -1, Number.NaN, 2 ** 53), 4);
    expect(native.memory()).toEqual(before);
    expect(() => native.disposeAll(new Float64Array(2), 3)).toThrow(/the count is larger than the array/);
    expect(() => native.disposeAll(new Float64Array(2), Number.NaN)).toThrow(RangeError);
    expect(() => native.disposeAll("x" as never, 0)).toThrow(/typed array/);
  });
});

describe("call", () => {
  it("refuses an id that find did not return", () => {
    for (const id of [-1, 1e9, 0.5, Number.NaN, "add", undefined]) expect(() => native.call(id as never)).toThrow();
    expect(() => native.results(1e9)).toThrow(TypeError);
  });

  it("without arguments names the missing one", () => {
    expect(() => native.call(add)).toThrow(/^aten::add\.Tensor: argument "self" is missing: expected a tensor$/);
    expect(() => (native.call as () => void)()).toThrow(/^call: /);
  });
});

describe("find", () => {
  it("refuses what libtorch does not have", () => {
    expect(() => native.find("aten::not_there.at_all")).toThrow(TensorError);
    expect(() => native.find("aten::not_there.at_all")).toThrow(
      /^aten::not_there\.at_all: libtorch .* has no such operator/,
    );
    expect(() => native.find("")).toThrow(TensorError);
    expect(() => native.find(5 as never)).toThrow(TypeError);
  });
});

describe("bytes", () => {
  it("of the wrong length are refused", () => {
    const x = tensor(1);
    expect(() => native.toBytes(x, new Float32Array(3))).toThrow(/8 bytes, but the array has 12/);
    expect(() => native.fromBytes(new Uint8Array(3), "f32")).toThrow(
      /3 bytes are not a multiple of the 4 bytes of a f32 element/,
    );
    expect(() => native.fromBytes([1, 2] as never, "f32")).toThrow(/typed array/);
    native.dispose(x);
  });
});

describe("threads", () => {
  it("can be set, only to an integer of 1 or more", () => {
    const before = native.numThreads();
    native.setNumThreads(1);
    expect(native.numThreads()).toBe(1);
    native.setNumThreads(before);
    for (const wrong of [0, -1, 1.5, Number.NaN, 1e9]) expect(() => native.setNumThreads(wrong)).toThrow(RangeError);
  });
});

describe("the processor", () => {
  it.each(["amx_bf16", "avx512_bf16"] as const)("has %s where the kernel says so", (what) => {
    const flags =
      readFileSync("/proc/cpuinfo", "utf8")
        .match(/^flags\s*:.*$/m)?.[0]
        .split(" ") ?? [];
    expect(native.processorHas(what)).toBe(flags.includes(what));
  });
});
