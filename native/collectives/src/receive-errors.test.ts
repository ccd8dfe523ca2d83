import { describe, expect, it } from "vitest";
import { type Communicator, collectives, kinds, reductions } from "./index.ts";

const send = (from: Communicator, to: number, x: Float32Array) =>
  from.operate(kinds.send, reductions.sum, to, [x], [], 0);
const receive = (at: Communicator, from: number, x: Float32Array) =>
  at.operate(kinds.recv, reductions.sum, from, [x], [], 0);

async function withTwoRanks(use: (ranks: Communicator[]) => Promise<void>) {
  const ranks = collectives().loopback(2, 0.3, [], []);
  await use(ranks);
  for (const rank of ranks) rank.abort("the test is over");
  await Promise.all(ranks.map((rank) => rank.close()));
}

describe("an error of a receive", () => {
  it("says receive if the sender does not send", () =>
    withTwoRanks(async ([, receiver]) => {
      await expect(receive(receiver!, 0, new Float32Array(2))).rejects.toThrow(
        "receive number 1 failed on rank 1: rank 0 did not take part in time; check what it is doing, or raise timeoutSeconds",
      );
    }));

  it("says what the other rank sends and what this rank receives", () =>
    withTwoRanks(async ([sender, receiver]) => {
      await Promise.all([send(sender!, 1, new Float32Array(2)), receive(receiver!, 0, new Float32Array(2))]);
      const sent = send(sender!, 1, new Float32Array(3));
      await expect(receive(receiver!, 0, new Float32Array(4))).rejects.toThrow(
        "receive number 2 failed on rank 1: rank 0 sends 3 f32 where rank 1 receives 4 f32; sizes and types must be the same on both",
      );
      await sent;
    }));
});

describe("an error of a send", () => {
  it("says send if the receiver does not receive", () =>
    withTwoRanks(async ([sender]) => {
      await expect(send(sender!, 1, new Float32Array(100_000))).rejects.toThrow(
        "send number 1 failed on rank 0: rank 1 did not take part in time",
      );
    }));
});
