/** For tests: runs the same task on every rank of a loopback world. */
import { type Group, loopback } from "@terse/collectives";
import type { CodecCost } from "../cost-model/measure-link.ts";

export async function onRanks<T>(size: number, task: (group: Group) => Promise<T>): Promise<T[]> {
  const groups = loopback(size);
  try {
    return await Promise.all(groups.map(task));
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

/** Codecs that take no time, so that predictions show the network alone. */
export const noComputing: CodecCost = {
  encode: 0,
  decode: 0,
  vote: 0,
  setField: 0,
  compareField: 0,
  encodeHalf: 0,
  decodeHalf: 0,
  encodeInt8: 0,
  sumInt8: 0,
  decodeInt8: 0,
};
