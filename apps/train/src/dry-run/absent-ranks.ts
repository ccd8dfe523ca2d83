import type { Group, Link } from "@terse/collectives";

/** The first rank of a group whose other ranks do not exist: its messages can be computed, and none can be sent. */
export function absentRanks(size: number, emulatedLink?: Link): Group {
  const none = () => Promise.reject(new Error("a dry run has no other ranks to send to"));
  return {
    rank: 0,
    size,
    engine: "none",
    emulatedLink,
    allReduce: none,
    reduceScatter: none,
    allGather: none,
    allToAll: none,
    broadcast: none,
    gather: none,
    scatter: none,
    barrier: none,
    send: none,
    recv: none,
    split: none,
    abort() {},
    close: async () => {},
    sent: () => ({ bytes: 0, messages: 0, headerBytes: 0 }),
    [Symbol.asyncDispose]: async () => {},
  };
}
