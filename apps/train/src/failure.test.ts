import { expect, it } from "vitest";
import { sentence } from "./failure.ts";

it("the sentence of a failure is that of the first error, not of what failed while it was cleaned up", async () => {
  const broken = (message: string) => ({
    [Symbol.asyncDispose]: () => Promise.reject(new Error(message)),
  });
  const work = async () => {
    await using _ = broken("closed second");
    await using __ = broken("closed first");
    throw new Error("the data is wrong");
  };
  const error = await work().catch((error: unknown) => error);
  expect(error).toBeInstanceOf(SuppressedError);
  expect(sentence(error)).toBe("the data is wrong");
});
