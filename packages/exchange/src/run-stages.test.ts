import { loopback } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { enterQueue } from "./collective-queue.ts";
import { ExchangeContext } from "./exchange-context.ts";
import { type Piece, runPipeline } from "./run-stages.ts";

describe("a pipeline", () => {
  it("frees a piece once, and after its data have arrived, where the next piece cannot be made", async () => {
    const [group, other] = loopback(2);
    const place = enterQueue(group!);
    const events: string[] = [];
    const arriving = Promise.withResolvers<number[]>();
    const piece: Piece = {
      up: { on: "up", call: () => arriving.promise.finally(() => events.push("arrived")) },
      reduce: () => events.push("reduced"),
      [Symbol.dispose]: () => events.push("freed"),
    };
    const broken = (): Piece => {
      throw new Error("its tensor is gone");
    };
    const ended = runPipeline([() => piece, broken], new ExchangeContext({ up: place, down: place }, undefined));
    const failed = expect(ended).rejects.toThrow("its tensor is gone");
    await new Promise(setImmediate);
    arriving.resolve([0, 0]);
    await failed;
    expect(events).toEqual(["arrived", "freed"]);
    await Promise.all([group!.close(), other!.close()]);
  });
});
