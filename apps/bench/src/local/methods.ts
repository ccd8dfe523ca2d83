/**
 * The methods that `bench local` trains: what happens inside a rank, how often it shares it, and what it sends then.
 */

/** The outer step: rate and momentum of SGD. */
export interface Outer {
  readonly lr: number;
  readonly momentum: number;
}

export interface LocalMethod {
  /** Its steps inside a rank: a method of `bench convergence`, at the settings that its search has found there. */
  readonly inside: string;
  /** H; undefined: messages in every step. */
  readonly syncEvery?: number;
  /** The outer step where the search begins. */
  readonly outer: Outer;
  /** What a round sends, and when: changes of the recipe. */
  readonly changes: readonly string[];
  /** What is searched with the first seed, from the settings inside on; or the method whose settings it takes. */
  readonly search: readonly ("lr" | "outer_lr" | "momentum")[] | string;
  /** 4 unless given. The ranks' batch together is the same for any number. */
  readonly workers?: number;
  /** A run of so many steps, with one seed; that of the recipe, with three, unless given. */
  readonly steps?: number;
}

const codec = (name: string, ...options: readonly string[]) => [
  "exchange.gradient.name=codec",
  `exchange.gradient.codec=${name}`,
  ...options.map((option) => `exchange.gradient.${option}`),
];
const mean: Outer = { lr: 1, momentum: 0 };
const all = ["lr", "outer_lr", "momentum"] as const;

const wires: Readonly<Record<string, readonly string[]>> = {
  f32: [],
  "8-bits": codec("int8"),
  "4-bits": codec("l1", "bits=4"),
  "4-bits-of-means": codec("bin-means", "bits=4"),
  "2-bits-of-means": codec("bin-means", "bits=2"),
  "1-bit": codec("scaled-sign"),
};
const sparse = codec("top-k", "ratio=0.015625", "indices=elias-fano", "values=2bit", "decay=0.95");

const muon = (syncEvery: number, wire: string, more: Partial<LocalMethod> = {}): LocalMethod => ({
  inside: "muon",
  syncEvery,
  outer: mean,
  changes: wires[wire]!,
  search: "muon-5-4-bits",
  ...more,
});
/** A round is used so many steps after it has left; `rebase`: what a rank does in them goes on top of it. */
const delayed = (syncEvery: number, wire: string, delay: number, { rebase = false } = {}): LocalMethod =>
  muon(syncEvery, wire, {
    changes: [...wires[wire]!, `local.delay=${delay}`, ...(rebase ? ["local.rebase=true"] : [])],
    search: `muon-${Math.min(syncEvery, 10)}-${wire}`,
  });
const adamw = (syncEvery: number, more: Partial<LocalMethod>): LocalMethod => ({
  inside: "adamw",
  syncEvery,
  outer: mean,
  changes: [],
  search: ["lr"],
  ...more,
});
/** Lion with steps of one length, so that they are whole numbers of it. */
const lion = (more: Partial<LocalMethod>): LocalMethod => ({
  inside: "lion",
  syncEvery: 10,
  outer: mean,
  search: ["lr"],
  ...more,
  changes: ["optimizer.weightDecay=0", "schedule.name=constant", "schedule.warmup=0", ...(more.changes ?? [])],
});
/** As DiLoCo and SparseLoCo have it: the momentum of the outer step is theirs, and its rate is searched. */
const ofPaper = ["lr", "outer_lr"] as const;
const diloco = { outer: { lr: 0.7, momentum: 0.9 }, search: ofPaper };

/** Wires with few bits search their own settings; f32, 8 bits and the means of 4 take those of 4 bits. */
const searchOf = (wire: string, syncEvery: number) =>
  ["4-bits", "2-bits-of-means", "1-bit"].includes(wire) ? all : `muon-${syncEvery}-4-bits`;

/**
 * "muon-5-4-bits": Muon inside, a round every 5 steps, 4 bits an element both ways: l1's, or those of means of bins.
 */
export const methods: Readonly<Record<string, LocalMethod>> = {
  ...Object.fromEntries(
    [5, 10].flatMap((syncEvery) =>
      Object.keys(wires).map((wire) => [
        `muon-${syncEvery}-${wire}`,
        muon(syncEvery, wire, { search: searchOf(wire, syncEvery) }),
      ]),
    ),
  ),
  "muon-3-1-bit": muon(3, "1-bit", { search: "muon-5-1-bit" }),
  "muon-4-1-bit": muon(4, "1-bit", { search: "muon-5-1-bit" }),
  "muon-5-2-bits-of-means-delay-2-rebase": delayed(5, "2-bits-of-means", 2, { rebase: true }),
  "muon-10-4-bits-delay-4": delayed(10, "4-bits", 4),
  "muon-10-4-bits-delay-4-rebase": delayed(10, "4-bits", 4, { rebase: true }),
  "muon-20-4-bits-delay-18": delayed(20, "4-bits", 18),
  "muon-20-4-bits-delay-18-rebase": delayed(20, "4-bits", 18, { rebase: true }),
  "muon-10-f32-2-workers": muon(10, "f32", { search: "muon-10-4-bits", workers: 2 }),
  "muon-10-f32-8-workers": muon(10, "f32", { search: "muon-10-4-bits", workers: 8 }),
  "muon-10-alone": muon(10, "f32", { outer: { lr: 1, momentum: 0.6 }, search: all, workers: 1 }),
  "adamw-10-f32": adamw(10, {}),
  "diloco-5": adamw(5, diloco),
  "diloco-10": adamw(10, diloco),
  "sparse-loco-10": adamw(10, { changes: sparse, search: ofPaper }),
  "lion-10-f32": lion({}),
  "lion-10-whole-numbers": lion({ changes: ["exchange.gradient.name=lion-steps"], search: "lion-10-f32" }),
  "muon-2000-steps": { inside: "muon", outer: mean, changes: [], search: [], steps: 2000 },
  "muon-5-8-bits-2000-steps": muon(5, "8-bits", { steps: 2000 }),
  "muon-20-8-bits-2000-steps": muon(20, "8-bits", { steps: 2000 }),
  "muon-50-8-bits-2000-steps": muon(50, "8-bits", { steps: 2000 }),
};
