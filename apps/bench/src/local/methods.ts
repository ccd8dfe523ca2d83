/** The methods that `bench local` trains: what happens inside a rank, how often it shares it, and what it sends then. */

export interface LocalMethod {
  /** Its steps inside a rank: a method of `bench convergence`, at the settings that its search has found there. */
  readonly inside: string;
  readonly syncEvery: number; // H
  /** The outer step where the search begins. */
  readonly outer: { readonly lr: number; readonly momentum: number };
  /** What a round sends: changes of the recipe. */
  readonly wire: readonly string[];
}

const codec = (name: string, ...options: readonly string[]) => [
  "exchange.gradient.name=codec",
  `exchange.gradient.codec=${name}`,
  ...options.map((option) => `exchange.gradient.${option}`),
];
const mean = { lr: 1, momentum: 0 };
const diloco = { lr: 0.7, momentum: 0.9 };

const wires: Readonly<Record<string, readonly string[]>> = {
  f32: [],
  "8-bits": codec("int8"),
  "4-bits": codec("l1", "bits=4"),
  "4-bits-of-means": codec("bin-means", "bits=4"),
  "2-bits-of-means": codec("bin-means", "bits=2"),
  "1-bit": codec("scaled-sign"),
};

/** "muon-5-4-bits": Muon inside, a round every 5 steps, 4 bits an element both ways: l1's, or those of means of bins. */
export const methods: Readonly<Record<string, LocalMethod>> = Object.fromEntries(
  [5, 10].flatMap((syncEvery) =>
    Object.entries(wires).flatMap(([name, wire]) => [
      [`muon-${syncEvery}-${name}`, { inside: "muon", syncEvery, outer: mean, wire }],
      ...(name === "f32"
        ? [[`diloco-${syncEvery}`, { inside: "adamw", syncEvery, outer: diloco, wire }] as const]
        : []),
    ]),
  ),
);
