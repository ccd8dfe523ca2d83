/**
 * Every codec's golden vectors through the public functions, with nothing but the language: browser.test.ts bundles
 * this file and runs it where there is no Node.
 */
import { type Codec, codecNamed, majority, majorityOrZero, tally, voteImplementation } from "../index.ts";

/** Each folder's vectors.json, as `vectors.py` writes them. */
export type Golden = Readonly<Record<string, { cases: readonly (CodecCase | VoteCase)[] }>>;

interface CodecCase {
  readonly parameters: Codec["parameters"];
  readonly call: Readonly<Record<string, unknown>> & { readonly hold?: string };
  readonly x: readonly number[];
  readonly wire: string;
  readonly scale: number;
  readonly sum: readonly number[];
}

interface VoteCase {
  readonly n: number;
  readonly votes: readonly (string | null)[]; // null: this rank is absent
  readonly planes: readonly string[];
}

/**
 * What is written and read here for each case: `implementation` beside the names that the vectors have. Bytes are
 * hexadecimal.
 */
export type Answer = Readonly<Record<string, unknown>>;

export function answers(golden: Golden): Answer[] {
  return Object.entries(golden).flatMap(([name, { cases }]) =>
    cases.map((each) => ("votes" in each ? elected(each) : encoded(name, each))),
  );
}

function encoded(name: string, { parameters, call, x, scale }: CodecCase): Answer {
  const codec = codecNamed(name, parameters);
  const hold = call.hold === undefined ? undefined : fromHex(call.hold);
  const wire = new Uint8Array(codec.wireBytes(x.length));
  codec.encode(wire, new Float32Array(x), { ...call, hold });
  const sum = new Float32Array(x);
  codec.decodeAdd(sum, wire, { scale, hold });
  return { implementation: codec.implementation, wire: toHex(wire), sum: toHex(new Uint8Array(sum.buffer)) };
}

function elected({ votes, n, planes: { length } }: VoteCase): Answer {
  const wires = votes.map((wire) => (wire === null ? null : fromHex(wire)));
  const out = () => new Uint8Array(Math.ceil(n / 8));
  const [majorityPlus, majorityMinus, plus, nonzero] = [out(), out(), out(), out()];
  const planes = Array.from({ length }, out);
  majority(majorityPlus, wires, n, { tie: "plus" });
  majority(majorityMinus, wires, n, { tie: "minus" });
  majorityOrZero(plus, nonzero, wires, n);
  tally(planes, wires, n);
  const results = Object.entries({ majorityPlus, majorityMinus, plus, nonzero });
  return {
    implementation: voteImplementation(),
    ...Object.fromEntries(results.map(([name, bytes]) => [name, toHex(bytes)])),
    planes: planes.map(toHex),
  };
}

const toHex = (bytes: Uint8Array): string => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
const fromHex = (text: string): Uint8Array =>
  Uint8Array.from({ length: text.length / 2 }, (_, i) => Number.parseInt(text.slice(2 * i, 2 * i + 2), 16));
