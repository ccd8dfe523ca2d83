import { describe, expect, it } from "vitest";
import { gramSchmidt, largestDifference, product, rowsOf, transposed } from "../testing/matrices.ts";
import { noise } from "../testing/train-matrices.ts";
import { orthonormalize } from "./orthonormalize.ts";

function columnsOf(P: Float32Array, r: number, method: "householder-qr" | "cholesky-qr") {
  const result = new Float32Array(P.length);
  orthonormalize(r, method, 3)(P.slice(), result);
  return rowsOf(result, [P.length / r, r]);
}

describe.each(["householder-qr", "cholesky-qr"] as const)("orthonormal columns by %s", (method) => {
  it.each([
    [1, 1],
    [5, 2],
    [300, 1],
    [300, 7],
    [500, 40],
  ])("are those of Gram and Schmidt up to their signs, of %i rows and %i columns", (m, r) => {
    const P = noise(m * r, m, r);
    const got = columnsOf(P, r, method);
    const along = product(transposed(gramSchmidt(rowsOf(P, [m, r]))), got);
    for (const [i, row] of along.entries())
      for (const [j, x] of row.entries()) expect(Math.abs(Math.abs(x) - (i === j ? 1 : 0))).toBeLessThan(1e-6);
    const identity = product(transposed(got), got);
    for (const [i, row] of identity.entries())
      for (const [j, x] of row.entries()) expect(Math.abs(x - (i === j ? 1 : 0))).toBeLessThan(1e-6);
  });

  it("are orthonormal even where P has not full rank", () => {
    const single = noise(300, 1);
    const P = Float32Array.from({ length: 900 }, (_, i) => single[Math.floor(i / 3)]! * ((i % 3) + 1));
    for (const x of [P, new Float32Array(900)]) {
      const got = columnsOf(x, 3, method);
      const identity = product(transposed(got), got);
      for (const [i, row] of identity.entries())
        for (const [j, value] of row.entries()) expect(Math.abs(value - (i === j ? 1 : 0))).toBeLessThan(2e-6);
    }
  });

  it("are the same bits for the same seed", () => {
    const P = noise(2100, 5);
    expect(largestDifference(columnsOf(P, 7, method), columnsOf(P, 7, method))).toBe(0);
  });
});
