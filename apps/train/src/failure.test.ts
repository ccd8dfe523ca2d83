import { expect, it, vi } from "vitest";
import { reportFailure, sentence } from "./failure.ts";

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

it("a failure gives the terminal no command, and no line, of a name or a peer that its sentence has", () => {
  let said = "";
  const write = vi.spyOn(process.stderr, "write").mockImplementation((text) => {
    said += text;
    return true;
  });
  const send = process.send;
  try {
    delete process.send; // as without a launcher
    expect(reportFailure(new Error("there is no a\u001b]52;c;cm0=\u0007b\u202ec\nsecond line"))).toBe(1);
  } finally {
    if (send) process.send = send;
    write.mockRestore();
  }
  expect(said).toBe("error: there is no a·]52;c;cm0=·b·c·second line\n");
});
