import { describe, expect, it } from "vitest";
import { simdLevel } from "./processor.ts";

describe("simdLevel", () => {
  it("reads the widest instruction set that kernels can use", () => {
    expect(simdLevel("processor : 0\nflags\t\t: fpu sse2 avx2 avx512f avx512bw avx512vl avx512dq\n")).toBe("avx512");
    expect(simdLevel("flags\t\t: fpu sse2 avx2 avx512f\n")).toBe("avx2"); // without byte and word forms
    expect(simdLevel("flags\t\t: fpu sse2 avx\n")).toBe("scalar");
    expect(simdLevel("Features\t: fp asimd evtstrm\n")).toBe("neon");
    expect(simdLevel("")).toBe("scalar");
  });
});
