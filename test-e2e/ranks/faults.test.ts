import { connect, type Socket } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { serveRendezvous } from "@terse/collectives";
import { describe, expect, it } from "vitest";
import { type Engine, engines, openNetwork } from "./faulty-network.ts";
import { random, seed } from "./seed.ts";
import { errorOf, freePort, type Outcome, type StartOptions, startRanks } from "./start-ranks.ts";

const token = "the secret of this test";

/** Starts ranks of a world whose rendezvous server this test runs. */
function startIn(server: { host: string; port: number }, options: StartOptions) {
  return startRanks({
    ...options,
    env: (rank) => ({
      TERSE_TOKEN: token,
      TERSE_RENDEZVOUS: `${server.host}:${server.port}`,
      ...options.env?.(rank),
    }),
  });
}
const others = (rank: number, size: number) => Array.from({ length: size }, (_, r) => r).filter((r) => r !== rank);
const exits = (outcomes: readonly Outcome[]) => outcomes.map(({ code, signal }) => signal ?? code);

/** Connects without being a rank, and sends text. `closed` resolves with the answer. */
function connectAndSend(port: number, text: string | Uint8Array): { socket: Socket; closed: Promise<string> } {
  const socket = connect(port, "127.0.0.1");
  let answer = "";
  socket.on("data", (data) => {
    answer += data;
  });
  socket.on("error", () => {}); // a reset: the close event follows
  const closed = new Promise<string>((resolve) => socket.on("close", () => resolve(answer)));
  socket.write(text);
  return { socket, closed };
}
const noise = Uint8Array.from({ length: 5000 }, (_, i) => random(`noise ${i}`) * 256);
/** The 64-bit words at the beginning of a message of Gloo. */
const preamble = (...words: bigint[]) => new Uint8Array(BigUint64Array.from(words).buffer);

describe.each(engines)("ranks that call different operations over %s", (engine) => {
  it.each([
    [
      "allReduce f32 10",
      "allReduce f64 10",
      "has 10 f64 where rank \\d has 10 f32|has 10 f32 where rank \\d has 10 f64",
    ],
    [
      "allReduce f32 3000000",
      "allReduce i32 3000000",
      "has 3000000 i32 where rank \\d has 3000000 f32|f32 where .* i32",
    ],
    // Equal in their lower 32 bits.
    ["allReduce u8 5", `allReduce u8 ${2 ** 32 + 5}`, "has (5 u8 where rank \\d has 4294967301|4294967301 u8 .* 5) u8"],
    ["allReduce f32 10", "max f32 10", "calls (max and rank \\d calls sum|sum and rank \\d calls max)"],
    ["allReduce f32 3000000", "allGather f32 3000000", "is in all-(gather|reduce) number 1 while rank \\d is in all-"],
    ["allToAll f32 10", "barrier f32 0", "is in (barrier|all-to-all) number 1 while rank \\d is in "],
    [
      "broadcast f32 3000000",
      "broadcastFromRank2 f32 3000000",
      "the root of this broadcast is rank 2 on rank 1 and rank 0 on rank \\d|rank 0 on rank \\d and rank 2 on rank 1",
    ],
  ])("all fail with one error that names rank 1 and the difference: %s, and %s", async (others, rank1, sentence) => {
    const env = () => ({ TERSE_ENGINE: engine });
    await using run = await startRanks({ program: "mismatched-calls.ts", size: 3, args: [others, rank1], env });
    const outcomes = await run.end();
    expect(exits(outcomes)).toEqual([0, 0, 0]);
    const errors = outcomes.map(errorOf);
    for (const error of errors) expect(error).toEqual(errors[0]);
    expect(errors[0]).toMatchObject({ name: "CollectiveError", reason: "mismatch" });
    expect(errors[0]!.message).toMatch(new RegExp(sentence));
    expect(errors[0]!.message).toContain("rank 1");
  });
});

// These wait for deadlines: all at once.
describe.concurrent("a rank that starts at another time than the others", () => {
  it("joins when it starts before the deadline", async () => {
    await using server = await serveRendezvous({ size: 3, token });
    await using early = await startIn(server, { program: "join.ts", size: 3, absent: [1] });
    await sleep(1500);
    await using late = await startIn(server, { program: "join.ts", size: 3, absent: [0, 2] });
    expect(exits([...(await early.end()), ...(await late.end())])).toEqual([0, 0, 0]);
  });

  it("gets an error after the deadline, and so do the others", async () => {
    const place = { host: "127.0.0.1", port: await freePort() };
    await using early = await startIn(place, { program: "join.ts", size: 3, absent: [1], args: ["60", "", "here"] });
    await Promise.all(early.ranks.map((rank) => rank.reported("here")));
    await using server = await serveRendezvous({ size: 3, token, port: place.port, deadlineSeconds: 10 });
    const outcomes = await early.end();
    await using late = await startIn(server, { program: "join.ts", size: 3, absent: [0, 2] });
    outcomes.push(...(await late.end()));
    expect(exits(outcomes)).toEqual([1, 1, 1]);
    for (const outcome of outcomes)
      expect(errorOf(outcome)!.message).toMatch(
        /rank 1 of 3 did not connect to the rendezvous within 10 s; check that/,
      );
  });

  it("is refused when another process has its rank, and the world goes on", async () => {
    await using server = await serveRendezvous({ size: 2, token });
    await using run = await startIn(server, { program: "block-event-loop.ts", size: 2, args: ["1.5"] });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    await using second = await startIn(server, { program: "join.ts", size: 2, absent: others(1, 2) });
    const [refused] = await second.end();
    expect(refused!.code).toBe(1);
    const first = run.ranks[1]!.process.pid;
    expect(errorOf(refused!)!.message).toMatch(
      new RegExp(
        `refused rank 1: rank 1 has already joined \\(pid ${first} on .+\\); every process needs a RANK of its own`,
      ),
    );
    const outcomes = await run.end();
    expect(outcomes.map((each) => each.reports.at(-1))).toEqual([{ sum: 2 }, { sum: 2 }]);
    expect(exits(outcomes)).toEqual([0, 0]);
  });

  it("is refused when it is of an earlier attempt, and the new attempt goes on", async () => {
    const port = await freePort();
    const before = await serveRendezvous({ size: 2, token, port, epoch: "0" });
    await using first = await startIn(before, {
      program: "run-until-failure.ts",
      size: 2,
      env: () => ({ TERSE_EPOCH: "0" }),
    });
    await Promise.all(first.ranks.map((rank) => rank.reported("ready")));
    first.ranks[0]!.process.kill("SIGKILL");
    const [, survivor] = await first.end();
    expect(errorOf(survivor!)).toMatchObject({ name: "RankLostError", rank: 0 });
    // This process retries before the new rendezvous listens, and while the new ranks join.
    await using old = await startIn(before, {
      program: "join.ts",
      size: 2,
      absent: [0],
      env: () => ({ TERSE_EPOCH: "0" }),
    });
    await before.close();
    await using server = await serveRendezvous({ size: 2, token, port, epoch: "1" });
    const [refused] = await old.end();
    expect(errorOf(refused!)!.message).toMatch(/this is attempt 1 of the run, and rank 1 \(pid \d+\) is of attempt 0/);
    expect(refused!.code).toBe(1);
    await using again = await startIn(server, { program: "join.ts", size: 2, env: () => ({ TERSE_EPOCH: "1" }) });
    expect(exits(await again.end())).toEqual([0, 0]);
  });

  it("is refused when it is of an earlier run with another token", async () => {
    await using server = await serveRendezvous({ size: 2, token });
    await using old = await startIn(server, {
      program: "join.ts",
      size: 2,
      absent: [0],
      env: () => ({ TERSE_TOKEN: "the last run's" }),
    });
    const [refused] = await old.end();
    expect(errorOf(refused!)!.message).toMatch(/the token is wrong; TERSE_TOKEN must be the one that/);
    await using run = await startIn(server, { program: "join.ts", size: 2 });
    expect(exits(await run.end())).toEqual([0, 0]);
  });
});

describe("connections to the rendezvous that are not ranks", () => {
  const hello = JSON.stringify({
    terse: 2,
    token: "guess",
    epoch: "0",
    rank: 1,
    size: 2,
    config: "",
    pid: 1,
    host: "",
  });

  it(`are refused with a reason, whatever they send, and the world goes on (seed ${seed})`, async () => {
    await using server = await serveRendezvous({ size: 2, token });
    await using run = await startIn(server, { program: "block-event-loop.ts", size: 2, args: ["2"] });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    const texts = [
      noise,
      "GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
      `${hello}\n`,
      `${"[".repeat(4000)}\n`,
      `{"__proto__":{"terse":1}}\n`,
      Buffer.concat([preamble(1n << 40n, 1n, 0x54n << 56n, 0n, 1n << 40n, 0n), Buffer.from("\n")]),
      "x".repeat(100_000),
    ];
    for (const text of texts) {
      const answer = await connectAndSend(server.port, text).closed;
      // Data that the server had not read when it closed causes a reset, which may overtake the reason.
      if (answer !== "") expect(JSON.parse(answer)).toEqual({ refused: expect.stringMatching(/rendezvous|token/) });
      expect(answer).not.toContain(token);
    }
    const half = connectAndSend(server.port, hello.slice(0, 40)); // and nothing more
    const outcomes = await run.end();
    expect(outcomes.map((each) => each.reports.at(-1))).toEqual([{ sum: 2 }, { sum: 2 }]);
    expect(exits(outcomes)).toEqual([0, 0]);
    half.socket.destroy();
  });

  it("keep no rank out, even when a thousand of them send nothing", async () => {
    await using server = await serveRendezvous({ size: 2, token });
    const silent = new Set<Socket>();
    let [opened, evicted] = [0, 0];
    const flood = async (count: number) => {
      for (let i = 0; i < count; i += 50) {
        const some = Array.from({ length: 50 }, () => connectAndSend(server.port, hello.slice(0, 20)));
        await Promise.all(
          some.map(({ socket, closed }) => {
            silent.add(socket);
            void closed.then((answer) => {
              silent.delete(socket);
              if (answer === "") evicted++; // a connection that is closed after its 10 s gets a reason
            });
            opened++;
            return new Promise<void>((resolve) => socket.once("connect", resolve).once("close", () => resolve()));
          }),
        );
      }
    };
    await flood(1000);
    await using run = await startIn(server, { program: "block-event-loop.ts", size: 2, args: ["1"] });
    let joined = false;
    const all = Promise.all(run.ranks.map((rank) => rank.reported("ready"))).finally(() => {
      joined = true;
    });
    while (!joined) {
      await flood(50);
      await sleep(20); // the ranks need the processor too
    }
    await all;
    await flood(500);
    expect(opened).toBeGreaterThanOrEqual(1500);
    // The server has closed the others
    await expect.poll(() => silent.size, { timeout: 300_000 }).toBeLessThanOrEqual(256);
    expect(evicted).toBeGreaterThan(0);
    const outcomes = await run.end();
    expect(outcomes.map((each) => each.reports.at(-1))).toEqual([{ sum: 2 }, { sum: 2 }]);
    expect(exits(outcomes)).toEqual([0, 0]);
    for (const socket of silent) socket.destroy();
  });
});

describe.concurrent("invalid bytes on a data connection", () => {
  const terabyte = preamble(1n << 40n, 1n, 0x54n << 56n, 0n, 1n << 40n, 0n);
  async function insert(engine: Engine, size: number, bytes: Uint8Array) {
    await using server = await serveRendezvous({ size, token });
    await using network = await openNetwork(server, engine);
    const place = { TERSE_RENDEZVOUS: network.rendezvous, TERSE_ADDRESS: network.address, TERSE_ENGINE: engine };
    const env = () => ({ TERSE_TOKEN: token, ...place });
    await using run = await startRanks({ program: "run-until-failure.ts", size, args: ["idle"], env });
    await Promise.all(run.ranks.map((rank) => rank.reported("ready")));
    const connection = await network.afterBytes(1);
    await sleep(300); // until the barrier is over
    connection.add(bytes);
    return { outcomes: await run.end(), sender: connection.ranks[0], receiver: connection.ranks[1] };
  }

  it.each([
    ["a message of a terabyte", terabyte],
    [`noise of seed ${seed}`, noise],
  ])("end the group over tcp, with an error that names the apparent sender: %s", async (_, bytes) => {
    const { outcomes, sender, receiver } = await insert("tcp", 3, bytes);
    expect(exits(outcomes)).toEqual([0, 0, 0]);
    for (const outcome of outcomes) {
      expect([outcome.stderr, outcome.reports.at(-1)]).toEqual(["", { closed: true }]);
      expect(errorOf(outcome)).toEqual(errorOf(outcomes[0]!));
    }
    const { name, message } = errorOf(outcomes[0]!)!;
    expect(name).toBe("CollectiveError");
    expect(message).toMatch(
      new RegExp(`^barrier number 3 failed on rank ${receiver}: .*rank ${sender} .*does not begin like a message`),
    );
  });

  // Gloo ends the process on a thread of its own, which nothing can catch.
  it.skipIf(!engines.includes("gloo")).each([
    ["a message of a terabyte", terabyte],
    ["a message without a receive", preamble(148n, 1n, (0x54n << 56n) | 7n, 0n, 100n, 0n)],
  ])(
    "end the rank that reads them over gloo with an error message and an exit code, and the others name it: %s",
    async (_, bytes) => {
      const { outcomes, receiver } = await insert("gloo", 3, bytes);
      for (const outcome of outcomes) {
        if (outcome.rank === receiver) {
          expect([outcome.code, outcome.signal]).toEqual([70, null]);
          expect(outcome.stderr).toMatch(
            /^terse: a data connection received bytes that no rank sends.+this process ends/,
          );
        } else {
          expect([outcome.code, outcome.signal]).toEqual([0, null]);
          expect(errorOf(outcome)).toMatchObject({ name: "RankLostError", rank: receiver });
        }
      }
    },
  );
});
