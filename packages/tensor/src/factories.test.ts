import { existsSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import {
  Arena,
  arange,
  type DType,
  empty,
  emptyLike,
  eye,
  fromTypedArray,
  full,
  keep,
  Linear,
  linspace,
  manualSeed,
  ones,
  onesLike,
  rand,
  randint,
  randn,
  randomState,
  randperm,
  scope,
  setRandomState,
  type Tensor,
  type TypedArray,
  tensor,
  withDevice,
  zeros,
  zerosLike,
} from "./index.ts";
import { libtorch } from "./runtime.ts";
import { pythonTorchVersion, runPython } from "./testing/python.ts";

const values = async (x: Tensor) => [...(await x.toTypedArray())].map(Number);
const kind = (x: Tensor) => `${x.dtype}[${x.shape}]`;

const hugePages = existsSync("/sys/kernel/mm/transparent_hugepage/enabled");

/** What the kernel says of the mapping that holds an address. */
function mappingFlags(address: bigint): string[] {
  const mappings = readFileSync("/proc/self/smaps", "utf8").split(/^(?=[\da-f]+-[\da-f]+ )/m);
  const holds = (mapping: string) => {
    const [, from, to] = /^([\da-f]+)-([\da-f]+) /.exec(mapping)!;
    return address >= BigInt(`0x${from}`) && address < BigInt(`0x${to}`);
  };
  const [, flags] = /^VmFlags: (.*)$/m.exec(mappings.find(holds) ?? "") ?? [];
  return flags?.trim().split(" ") ?? [];
}

describe("memory", () => {
  it.skipIf(!hugePages || "THP_MEM_ALLOC_ENABLE" in process.env)(
    "of 2 MiB and more asks for huge pages where the system has them, but for the pages that others share",
    () => scope(() => expect(mappingFlags(zeros([1 << 20]).pointer + 4096n)).toContain("hg")),
  );
});

describe("factories", () => {
  it("have the values of their names, and are f32 on the CPU by default", () =>
    scope(async () => {
      expect(await values(zeros([2, 2]))).toEqual([0, 0, 0, 0]);
      expect(await values(ones([3], { dtype: "i32" }))).toEqual([1, 1, 1]);
      expect(await values(full([2], 7))).toEqual([7, 7]);
      expect(await values(eye(2))).toEqual([1, 0, 0, 1]);
      expect(await values(linspace(0, 1, 5))).toEqual([0, 0.25, 0.5, 0.75, 1]);
      expect(kind(full([2], 7))).toBe("f32[2]");
      expect(kind(empty([2, 0, 3]))).toBe("f32[2,0,3]");
      expect(ones([1]).device).toBe("cpu");
      expect(ones([1], { requiresGrad: true }).requiresGrad).toBe(true);
    }));

  it("arange gives i64 if its numbers are integers, else f32", () =>
    scope(async () => {
      expect(await values(arange(3))).toEqual([0, 1, 2]);
      expect(kind(arange(3))).toBe("i64[3]");
      expect(await values(arange(2, 8, 3))).toEqual([2, 5]);
      expect(await values(arange(0, 1, 0.5))).toEqual([0, 0.5]);
      expect(kind(arange(0, 1, 0.5))).toBe("f32[2]");
      expect(kind(arange(3, { dtype: "f64" }))).toBe("f64[3]");
    }));

  it("zerosLike, onesLike and emptyLike take the shape, dtype and device of another tensor", () =>
    scope(() => {
      const x = ones([2, 3], { dtype: "f64" });
      expect([zerosLike(x), onesLike(x), emptyLike(x), zerosLike(x, { dtype: "i8" })].map(kind)).toEqual([
        "f64[2,3]",
        "f64[2,3]",
        "f64[2,3]",
        "i8[2,3]",
      ]);
    }));

  it("tensor() accepts nested arrays, and refuses ragged ones", () =>
    scope(async () => {
      const x = tensor([
        [1, 2, 3],
        [4, 5, 6],
      ]);
      expect(kind(x)).toBe("f32[2,3]");
      expect(await values(x)).toEqual([1, 2, 3, 4, 5, 6]);
      expect(kind(tensor(2.5))).toBe("f32[]");
      expect(kind(tensor([[], []]))).toBe("f32[2,0]");
      expect(await values(tensor([true, false], { dtype: "bool" }))).toEqual([1, 0]);
      expect(await values(tensor([2 ** 40, -1], { dtype: "i64" }))).toEqual([2 ** 40, -1]);
      expect(() => tensor([[1, 2], [3]])).toThrow(/different lengths; give all the length of the first, .* \[2, 2\]/);
      expect(() => tensor([[1, 2], 3])).toThrow(/different depths; give all the depth of the first, .* \[2, 2\]/);
    }));
});

describe("typed arrays", () => {
  it.each<[DType, TypedArray]>([
    ["f32", Float32Array.of(1.5, -0, Number.NaN, Number.NEGATIVE_INFINITY)],
    ["f64", Float64Array.of(Math.PI, -1e300)],
    ["i64", BigInt64Array.of(-(2n ** 63n), 2n ** 63n - 1n)],
    ["i32", Int32Array.of(-(2 ** 31), 2 ** 31 - 1)],
    ["i16", Int16Array.of(-5, 5)],
    ["i8", Int8Array.of(-128, 127)],
    ["u8", Uint8Array.of(0, 255)],
    ["bool", Uint8Array.of(0, 1, 1)],
    ["bf16", Uint16Array.of(0x3f80, 0xc000)],
    ["f16", Uint16Array.of(0x3c00, 0xc000)],
  ])("a tensor of %s keeps the bits of its typed array", (dtype, array) =>
    scope(async () => {
      const x = fromTypedArray(array, undefined, { dtype });
      expect(x.dtype).toBe(dtype);
      const out = await x.toTypedArray();
      expect(out).toEqual(array);
      expect(out.buffer).not.toBe(array.buffer);
    }),
  );

  it("reads a Uint16Array as the bits of bf16 or f16", () =>
    scope(async () => {
      expect(
        await values(fromTypedArray(Uint16Array.of(0x3f80, 0xc000), undefined, { dtype: "bf16" }).to("f32")),
      ).toEqual([1, -2]);
      expect(
        await values(fromTypedArray(Uint16Array.of(0x3c00, 0xc000), undefined, { dtype: "f16" }).to("f32")),
      ).toEqual([1, -2]);
      expect(() => fromTypedArray(Uint16Array.of(1))).toThrow(/bf16/);
    }));

  it("copies the array, which may be part of a larger buffer", () =>
    scope(async () => {
      const array = Float32Array.of(1, 2, 3, 4);
      const x = fromTypedArray(array.subarray(1, 3));
      array.fill(9);
      expect(await values(x)).toEqual([2, 3]);
    }));

  it("converts to a shape and a dtype", () =>
    scope(() => {
      expect(kind(fromTypedArray(new Float32Array(6), [2, 3], { dtype: "f64" }))).toBe("f64[2,3]");
      expect(() => fromTypedArray(new Float32Array(6), [4])).toThrow(/aten::view\(self: f32\[6\]\).*\[4\]/);
      expect(kind(fromTypedArray(new Float32Array(0), [0, 3]))).toBe("f32[0,3]");
    }));

  it("of a transposed view are in row-major order, with the values at the time of the call", () =>
    scope(async () => {
      const x = tensor([
        [1, 2],
        [3, 4],
      ]);
      const pending = x.T.toTypedArray();
      x.zero_();
      expect([...(await pending)]).toEqual([1, 3, 2, 4]);
    }));
});

describe("item and pointer", () => {
  it("item gives a number, and an error if there is not exactly one element or it is not a safe integer", () =>
    scope(() => {
      expect(tensor([[2.5]]).item()).toBe(2.5);
      expect(fromTypedArray(BigInt64Array.of(-(2n ** 53n) + 1n)).item()).toBe(-(2 ** 53) + 1);
      expect(tensor(true, { dtype: "bool" }).item()).toBe(1);
      expect(() => ones([2]).item()).toThrow(/f32\[2\] has 2 elements/);
      expect(() => fromTypedArray(BigInt64Array.of(2n ** 60n)).item()).toThrow(/1152921504606846976/);
    }));

  it("pointer includes a view's offset, and is an error if the tensor is not contiguous", () =>
    scope(() => {
      const x = zeros([4, 4]);
      expect(x.select(0, 1).pointer - x.pointer).toBe(16n);
      expect(x.pointer % 64n).toBe(0n);
      expect(() => x.select(1, 1).pointer).toThrow(/contiguous\(\)/);
      expect(x.T.isContiguous).toBe(false);
    }));
});

describe("random numbers", () => {
  const { version } = libtorch();
  const needsSame =
    pythonTorchVersion === version ? "" : ` (skipped: no Python with torch ${version}, the version loaded here)`;
  it.skipIf(needsSame !== "")(`have the bits of PyTorch's for the same seed${needsSame}`, () =>
    scope(async () => {
      const expected = await runPython(`
torch.manual_seed(1234)
outputs["randn"] = torch.randn(3, 5)
outputs["rand"] = torch.rand(7)
outputs["randint"] = torch.randint(-3, 9, (20,))
outputs["randperm"] = torch.randperm(17)
outputs["normal"] = torch.empty(40).normal_(1, 0.5)
outputs["uniform"] = torch.empty(9).uniform_(-2, 3)
outputs["bernoulli"] = torch.empty(30).bernoulli_(0.3)
outputs["multinomial"] = torch.multinomial(torch.tensor([0.1, 0.5, 0.4, 2.0]), 12, replacement=True)
torch.manual_seed(2**53 + 7)
outputs["large"] = torch.rand(3)
`);
      manualSeed(1234);
      const drawn: Record<string, Tensor> = {
        randn: randn([3, 5]),
        rand: rand([7]),
        randint: randint(-3, 9, [20]),
        randperm: randperm(17),
        normal: empty([40]).normal_({ mean: 1, std: 0.5 }),
        uniform: empty([9]).uniform_(-2, 3),
        bernoulli: empty([30]).bernoulli_(0.3),
        multinomial: tensor([0.1, 0.5, 0.4, 2]).multinomial(12, { replacement: true }),
      };
      manualSeed(2n ** 53n + 7n);
      drawn["large"] = rand([3]);
      for (const [name, x] of Object.entries(drawn)) {
        expect(kind(x), name).toBe(kind(expected[name]!));
        expect(x.equal(expected[name]!), name).toBe(true);
      }
    }),
  );

  it("continue from a saved state with the same numbers", () =>
    scope(() => {
      manualSeed(5);
      randn([3]); // an odd number, so that the state contains the second of a pair of normals
      const state = randomState();
      const first = randn([10]);
      setRandomState(state);
      expect(randn([10]).equal(first)).toBe(true);
    }));

  it("need an integer seed", () => {
    expect(() => manualSeed(0.5)).toThrow(/a seed must be an integer/);
  });
});

describe("a standard device", () => {
  it("is that of new tensors, until the work ends; parameters and an arena on meta have shapes and no memory", () => {
    const arena = withDevice("meta", () => new Arena(new Linear(1_000_000, 1_000_000, { bias: false })));
    expect(arena.parameters.device).toBe("meta");
    expect(arena.segments).toMatchObject([{ shape: [1_000_000, 1_000_000], length: 10 ** 12 }]);
    expect(zerosLike(arena.gradients).length).toBe(10 ** 12);
    const before = process.memoryUsage().external; // what the garbage collector counts
    keep(zerosLike(arena.gradients));
    expect(process.memoryUsage().external - before).toBeLessThan(10 ** 9);
    expect(withDevice("meta", () => zeros([2], { device: "cpu" }).device)).toBe("cpu");
    expect(() =>
      withDevice("meta", () => {
        throw new Error("fails");
      }),
    ).toThrow("fails");
    expect(zeros([2]).device).toBe("cpu");
  });
});
