/** Several rows in one: which rows, or pieces of them, are packed together. */
import type { StoredRow } from "./stored-row.ts";

/**
 * Best fit decreasing: rows by falling length, each into the block with the least room that is enough; of several such
 * blocks the one that has had that room for longest. No row is longer than a block. This is TRL's strategy "bfd"; Ding
 * et al. 2024, https://arxiv.org/abs/2404.10830
 */
export function packBestFit(rows: readonly StoredRow[], block: number): StoredRow[][] {
  const packed: StoredRow[][] = [];
  const withRoom = Array.from({ length: block }, () => new Waiting<StoredRow[]>()); // blocks by their room
  const rooms = new Rooms(block);
  for (const row of rows.toSorted((a, b) => b.length - a.length)) {
    const room = rooms.leastFrom(row.length);
    const into = room === undefined ? [] : withRoom[room]!.take();
    if (room === undefined) packed.push(into);
    else if (withRoom[room]!.isEmpty) rooms.remove(room);
    into.push(row);
    const left = (room ?? block) - row.length;
    withRoom[left]!.add(into);
    if (left > 0) rooms.add(left);
  }
  return packed;
}

/** All tokens one after the other, cut every `block` tokens: TRL's strategy "wrapped". A row may be in two blocks. */
export function packWrapped(rows: readonly StoredRow[], block: number): StoredRow[][] {
  const packed: StoredRow[][] = [];
  let room = 0;
  for (const row of rows)
    for (let from = 0; from < row.length; ) {
      if (room === 0) {
        packed.push([]);
        room = block;
      }
      const to = Math.min(row.length, from + room);
      packed.at(-1)!.push(row.part(from, to));
      room -= to - from;
      from = to;
    }
  return packed;
}

/** First in, first out. */
class Waiting<T> {
  #items: T[] = [];
  #next = 0;

  get isEmpty(): boolean {
    return this.#next === this.#items.length;
  }

  add(item: T): void {
    this.#items.push(item);
  }

  take(): T {
    const item = this.#items[this.#next++]!;
    if (this.isEmpty) [this.#items, this.#next] = [[], 0];
    return item;
  }
}

/** A set of numbers from 1 to `most` − 1, as a tree in which each node has the largest number below it. */
class Rooms {
  readonly #leaves: number;
  readonly #largest: Uint32Array;

  constructor(most: number) {
    this.#leaves = 2 ** Math.ceil(Math.log2(Math.max(2, most)));
    this.#largest = new Uint32Array(2 * this.#leaves);
  }

  add(room: number): void {
    this.#set(room, room);
  }

  remove(room: number): void {
    this.#set(room, 0);
  }

  /** The least of them that is `length` or more. */
  leastFrom(length: number): number | undefined {
    if (this.#largest[1]! < length) return undefined;
    let node = 1;
    while (node < this.#leaves) node = 2 * node + (this.#largest[2 * node]! >= length ? 0 : 1);
    return this.#largest[node];
  }

  #set(room: number, value: number): void {
    let node = this.#leaves + room;
    this.#largest[node] = value;
    for (node >>= 1; node > 0; node >>= 1)
      this.#largest[node] = Math.max(this.#largest[2 * node]!, this.#largest[2 * node + 1]!);
  }
}
