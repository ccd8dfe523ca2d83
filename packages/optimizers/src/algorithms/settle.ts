import { sign } from "@terse/codecs";
import type { State } from "./state.ts";

/** Subtracts from every error what was sent of it. The next step gives the same bits with this and without it. */
export function settle({ elements = {}, owned = {}, unsettled = {} }: State): void {
  for (const [name, sent] of Object.entries(unsettled)) {
    const error = elements[name] ?? owned[name]?.values;
    delete unsettled[name];
    if (!sent || !error || sent.magnitude === 0) continue;
    const signs = new Uint8Array(Math.ceil(error.length / 8));
    const { magnitude, hold } = sent;
    sign.encode(signs, error, { zero: "plus", hold });
    sign.decodeAdd(error, signs, { scale: -magnitude, hold });
  }
}
