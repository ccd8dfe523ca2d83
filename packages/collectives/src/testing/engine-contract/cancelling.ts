/** Operations with an AbortSignal. */
import { expect, it } from "vitest";
import { CollectiveError } from "../../errors.ts";
import { type EngineUnderTest, everywhere } from "./world.ts";

export function cancelling(engine: EngineUnderTest, n: number): void {
  const unbuffered = 8 << 20; // floats; more than any engine buffers before the receive is called
  const reasonOf = async (call: Promise<unknown>) => {
    const [outcome] = await Promise.allSettled([call]);
    return outcome!.status === "rejected" ? (outcome!.reason as Error) : undefined;
  };

  it.each(["at once", "soon", "before"])(
    "ends the group on every rank when a collective's signal is aborted %s, and writes to no memory afterwards",
    async (when) => {
      for (let round = 0; round < 4; round++)
        await engine.withWorld(n, async (groups) => {
          const cancel = new AbortController();
          let leave = () => {};
          const left = new Promise<void>((resolve) => {
            leave = resolve;
          });
          if (when === "before") cancel.abort("enough");
          const xs = groups.map(() => new Float32Array(round < 2 ? 400_000 : 3_000_000).fill(1));
          await everywhere(groups, (group) => group.barrier());
          const errors = everywhere(groups, async (group, rank) => {
            const options = rank === 1 ? { signal: cancel.signal } : {};
            // Rank 0 calls the second all-reduce after rank 1's has failed, so that it cannot finish.
            const first = reasonOf(group.allReduce(xs[rank]!, "sum", options));
            if (rank === 0) await left;
            const second = reasonOf(group.allReduce(xs[rank]!, "sum", options));
            const [, error] = await Promise.all([first, second]);
            if (rank === 1) leave();
            xs[rank]!.fill(7);
            return error;
          });
          if (when === "soon") await new Promise((resolve) => setTimeout(resolve, 2 * round));
          cancel.abort("enough");
          for (const error of await errors) {
            expect(error).toBeInstanceOf(CollectiveError);
            expect(error!.message).toMatch(/^rank 1 cancelled all-reduce number [23]: enough$/);
          }
          await new Promise((resolve) => setTimeout(resolve, 10));
          for (const x of xs) expect(x.every((each) => each === 7)).toBe(true);
        });
    },
  );

  it.skipIf(!engine.traits.headers)(
    `cancels only a receive whose message has not arrived, and the next receive gets the message${engine.headersOnly}`,
    () =>
      engine.withWorld(n, async (groups) => {
        const reason = new Error("no longer");
        const x = new Float32Array(70_000);
        for (const wait of [0, 5]) {
          const cancel = new AbortController();
          const options = { signal: cancel.signal };
          const receives = [groups[1]!.recv(x, 0, options), groups[1]!.recv(x, 0, options)].map(reasonOf);
          await new Promise((resolve) => setTimeout(resolve, wait));
          cancel.abort(reason);
          expect(await Promise.all(receives)).toEqual([reason, reason]);
        }
        expect(await reasonOf(groups[1]!.recv(x, 0, { signal: AbortSignal.abort(reason) }))).toBe(reason);
        await Promise.all([groups[0]!.send(new Float32Array(70_000).fill(3), 1), groups[1]!.recv(x, 0)]);
        expect(x.every((each) => each === 3)).toBe(true);
        await everywhere(groups, (group) => group.barrier());
      }),
  );

  it.skipIf(!engine.traits.headers)(
    `loses nothing when a receive is cancelled while its message arrives${engine.headersOnly}`,
    async () => {
      const seen = { cancelled: 0, arrived: 0 };
      const times = engine.sizes ? 90 : 300; // a new world takes long where its ranks are other processes
      // Where the receive had begun, the group ends, and the loop goes on in a new one.
      for (let k = 0; k < times; )
        await engine.withWorld(n, async (groups) => {
          const begin = performance.now();
          for (let i = 0; i < 10; i++)
            await Promise.all([groups[1]!.recv(new Uint8Array(1), 0), groups[0]!.send(Uint8Array.of(1), 1)]);
          const typical = Math.min((performance.now() - begin) / 10, 10); // ms
          for (; k < times; k++) {
            const cancel = new AbortController();
            const x = new Uint8Array(1);
            const receive = reasonOf(groups[1]!.recv(x, 0, { signal: cancel.signal }));
            const send = reasonOf(groups[0]!.send(Uint8Array.of(k % 251), 1));
            const until = performance.now() + ((k % 30) / 10) * typical; // before, during or after the arrival
            while (performance.now() < until);
            if (k % 30 === 29) await receive; // on a busy machine it arrives only while this thread waits
            cancel.abort(new Error("no longer"));
            const error = await receive;
            if (error instanceof CollectiveError) {
              expect(error.message).toMatch(/^rank 1 cancelled receive number \d+ from rank 0: no longer$/);
              await send;
              return void k++;
            }
            if (error) await groups[1]!.recv(x, 0);
            seen[error ? "cancelled" : "arrived"]++;
            expect(x[0]).toBe(k % 251);
            expect(await send).toBeUndefined();
          }
        });
      expect(seen.cancelled).toBeGreaterThan(0);
      expect(seen.arrived).toBeGreaterThan(0);
    },
  );

  it.skipIf(!engine.traits.headers)(
    `cancels only a send that is queued behind another one, and the next send follows${engine.headersOnly}`,
    () =>
      engine.withWorld(n, async (groups) => {
        const cancel = new AbortController();
        const send = (fill: number, signal?: AbortSignal) =>
          groups[0]!.send(new Float32Array(unbuffered).fill(fill), 1, { signal });
        const sends = [send(1), send(2, cancel.signal), send(3)].map(reasonOf);
        cancel.abort(new Error("no longer"));
        expect((await sends[1])!.message).toBe("no longer");
        for (const want of [1, 3]) {
          const x = new Float32Array(unbuffered);
          await groups[1]!.recv(x, 0);
          expect(x.every((each) => each === want)).toBe(true);
        }
        expect(await Promise.all(sends)).toEqual([undefined, expect.any(Error), undefined]);
      }),
  );

  it("ends the group on every rank when the signal of a send that has begun is aborted", () =>
    engine.withWorld(n, async (groups) => {
      const cancel = new AbortController();
      const before = groups[0]!.sent().messages;
      const send = reasonOf(groups[0]!.send(new Float32Array(unbuffered), 1, { signal: cancel.signal }));
      while (groups[0]!.sent().messages === before) await new Promise((resolve) => setTimeout(resolve, 1));
      cancel.abort(new Error("too late"));
      const errors = [await send, ...(await everywhere(groups, (group) => reasonOf(group.barrier())))];
      for (const error of errors) expect(error!.message).toBe("rank 0 cancelled send number 1 to rank 1: too late");
      expect(errors[0]!.cause).toBe(cancel.signal.reason);
    }));

  it("changes nothing when the operation has finished, or its call was refused", () =>
    engine.withWorld(n, async (groups) => {
      const cancel = new AbortController();
      const { signal } = cancel;
      await everywhere(groups, (group) => group.barrier({ signal }));
      cancel.abort();
      await expect(groups[0]!.broadcast(new Float32Array(1), n, { signal })).rejects.toThrow(RangeError);
      await everywhere(groups, (group) => group.barrier());
    }));
}
