import { describe, expect, it } from "vitest";
import { arange, call, libtorch, ones, scope, type Tensor, TensorError, tensor, zeros } from "./index.ts";

const values = async (x: Tensor) => [...(await x.toTypedArray())].map(Number);

describe("call", () => {
  it("runs any operator by its schema's name, with defaults for missing arguments", () =>
    scope(async () => {
      expect(await values(call("aten::roll", arange(4), 1, 0))).toEqual([3, 0, 1, 2]);
      // A single number is repeated for int[1].
      expect(await values(call("aten::roll", arange(4), 1))).toEqual([3, 0, 1, 2]);
      expect(await values(call("aten::hardtanh", tensor([-5, 0.5, 5])))).toEqual([-1, 0.5, 1]);
      expect(await values(call("aten::cat", [ones([1]), zeros([1])]))).toEqual([1, 0]);
    }));

  it("returns all results: several tensors, lists of tensors, and plain values", () =>
    scope(async () => {
      const [q, r] = call("aten::linalg_qr", ones([3, 2])) as [Tensor, Tensor];
      expect([q.shape, r.shape]).toEqual([
        [3, 2],
        [2, 2],
      ]);
      const parts = call("aten::meshgrid.indexing", [arange(2), arange(3)], "ij") as Tensor[];
      expect(parts.map((x) => x.shape)).toEqual([
        [2, 3],
        [2, 3],
      ]);
      expect(call("aten::is_floating_point", ones([1]))).toBe(true);
      expect(call("aten::result_type.Tensor", ones([2]), ones([2], { dtype: "f64" }))).toBe("f64");
      const [scale, zeroPoint] = call("aten::_choose_qparams_per_tensor", tensor([0, 1])) as [number, number];
      expect([scale, zeroPoint]).toEqual([expect.closeTo(1 / 255, 9), 0]);
    }));

  it("returns the caller's own tensor if the operator wrote into it", () =>
    scope(async () => {
      const x = ones([2]);
      expect(call("aten::add_.Scalar", x, 1)).toBe(x);
      const out = zeros([2]);
      expect(call("aten::add.out", x, x, 1, out)).toBe(out);
      expect(await values(out)).toEqual([4, 4]);
      const [values_, indices] = [zeros([0]), zeros([0], { dtype: "i64" })];
      const sorted = call("aten::sort.values", x, 0, false, values_, indices) as Tensor[];
      expect(sorted[0]).toBe(values_);
      expect(sorted[1]).toBe(indices);
    }));

  it("accepts null for None, also in a list of tensors", () =>
    scope(async () => {
      const x = arange(6).view(2, 3);
      expect(await values(call("aten::index.Tensor", x, [null, tensor([2, 0], { dtype: "i64" })]))).toEqual([
        2, 0, 5, 3,
      ]);
      expect(await values(call("aten::clamp", x, null, 2))).toEqual([0, 1, 2, 2, 2, 2]);
    }));

  it("passes integers as integers, other numbers and −0 as floats", () =>
    scope(async () => {
      const i = arange(3);
      expect(call("aten::mul.Scalar", i, 2).dtype).toBe("i64");
      expect(call("aten::mul.Scalar", i, 2.5).dtype).toBe("f32");
      expect(call("aten::mul.Scalar", i, true).dtype).toBe("i64");
      expect(
        call("aten::add.Scalar", i, 2n ** 62n)
          .select(0, 0)
          .eq(2 ** 62)
          .item(),
      ).toBe(1);
      const negative = (await call("aten::full", [1], -0, "f32").toTypedArray()) as Float32Array;
      expect(Object.is(negative[0], -0)).toBe(true);
    }));

  it("reports an operator that this libtorch does not have, with the version of libtorch", () => {
    expect(() => call("aten::no_such_operator")).toThrow(TensorError);
    expect(() => call("aten::no_such_operator.Tensor")).toThrow(
      `aten::no_such_operator.Tensor: libtorch ${libtorch().version} has no such operator`,
    );
  });
});
