import { scope } from "@terse/tensor";
import { expect, it } from "vitest";
import { batchAt } from "./batch.ts";

it("batchAt gives i64 tensors (B, T) of the windows' bytes", async () => {
  await scope(async () => {
    const bytes = Uint8Array.from({ length: 256 }, (_, i) => 255 - i);
    const { tokens, next, last } = batchAt(bytes, [0, 200], 3, true);
    expect([tokens.shape, tokens.dtype, tokens.device]).toEqual([[2, 3], "i64", "cpu"]);
    expect(await tokens.toTypedArray()).toEqual(BigInt64Array.of(255n, 254n, 253n, 55n, 54n, 53n));
    expect([next.shape, next.dtype]).toEqual([[2, 3], "i64"]);
    expect(await next.toTypedArray()).toEqual(BigInt64Array.of(254n, 253n, 252n, 54n, 53n, 52n));
    expect(last).toBe(true);
  });
});
