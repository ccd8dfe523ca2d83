/** Runs every collective, with the same numbers in every world of one size. Reports the digest of all results. */
import { createHash } from "node:crypto";
import { type Group, joinWorld } from "@terse/collectives";
import { report } from "./report.ts";

export async function everyCollective(group: Group): Promise<string> {
  const { rank, size: n } = group;
  const hash = createHash("sha256");
  const note = (...xs: { buffer: ArrayBufferLike; byteOffset: number; byteLength: number }[]) => {
    for (const x of xs) hash.update(new Uint8Array(x.buffer, x.byteOffset, x.byteLength));
  };
  const numbers = Float32Array.from(
    { length: 600_100 },
    (_, i) => Math.sin(i * 12.9898 + rank * 78.233) * 2 ** ((i + rank) % 20),
  );
  const rough = (length: number, salt: number) => numbers.slice(7 * salt, 7 * salt + length);

  for (const length of [0, 1, 7, 2048, 2049, 100_003, 600_000]) {
    for (const op of ["sum", "mean", "min"] as const) {
      const x = rough(length, 1);
      await group.allReduce(x, op);
      note(x);
    }
    const parts = Array.from({ length: n }, (_, r) => rough(length + r, 2));
    await group.reduceScatter(parts);
    note(parts[rank]!);
    const gathered = Array.from({ length: n }, (_, r) =>
      r === rank ? rough(length + r, 3) : new Float32Array(length + r),
    );
    await group.allGather(gathered);
    note(...gathered);
    const outgoing = Array.from({ length: n }, (_, to) => rough(length + rank + to, 4));
    const incoming = Array.from({ length: n }, (_, from) => new Float32Array(length + from + rank));
    const notes = await group.allToAll(outgoing, incoming, { note: rank });
    note(...incoming, Uint8Array.from(notes));
    const x = rough(length, 5);
    await group.broadcast(x, n - 1);
    note(x);
    const collected = Array.from({ length: n }, (_, r) => new Float32Array(length + r));
    await group.gather(rough(length + rank, 8), 0, collected);
    const spread = new Float32Array(length + rank);
    await group.scatter(spread, 0, collected);
    note(...collected, spread);
    const from = new Float32Array(length);
    if (n > 1) await Promise.all([group.recv(from, (rank + n - 1) % n), group.send(rough(length, 6), (rank + 1) % n)]);
    note(from);
    await group.barrier();
  }
  const half = (await group.split(rank % 2))!;
  const x = rough(5000, 7);
  await half.allReduce(x);
  await half.close();
  note(x);
  const { bytes, messages, headerBytes } = group.sent();
  return `${hash.digest("hex")} ${bytes} ${messages} ${headerBytes}`;
}

if (import.meta.main) {
  await using group = await joinWorld();
  report({ digest: await everyCollective(group) });
}
