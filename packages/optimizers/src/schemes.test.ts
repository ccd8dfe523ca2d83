/** One training with every way to count votes and to send means: results that must be equal are so bit for bit. */
import { type Group, loopback } from "@terse/collectives";
import {
  allToAll,
  type ChosenSchemes,
  count,
  type DenseType,
  dense,
  type HierarchicalOptions,
  hierarchical,
  parameterServer,
  parameterServerEfficient,
  type VoteScheme,
} from "@terse/exchange";
import { Arena, fromTypedArray, Linear, Module, manualSeed, noGrad, Parameter, Sequential } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import {
  type Algorithm,
  adamw,
  compressed,
  dion,
  distributedLion,
  lion,
  lionCub,
  muon,
  Optimizer,
  powersgd,
} from "./index.ts";

const sizes = [0, 70, 200, 64, 1, 333];

class Vectors extends Module {
  readonly parts: readonly Parameter[];
  constructor() {
    super();
    this.parts = sizes.map(
      (length, k) =>
        new Parameter(fromTypedArray(Float32Array.from({ length }, (_, i) => Math.cos(i + k - 1))), { role: "vector" }),
    );
    for (const [k, part] of this.parts.entries()) Object.assign(this, { [`part${k}`]: part });
  }
}

const matrices = () =>
  new Sequential(
    ...[
      [9, 40],
      [40, 64],
      [64, 7],
      [30, 30],
    ].map(([rows, columns]) => new Linear(rows!, columns!, { bias: false })),
  );

interface Run {
  algorithm: () => Algorithm;
  model?: () => Module;
  ranks: number;
  schemes: () => Partial<ChosenSchemes>;
  gradient?: (rank: number, step: number, i: number) => number;
  bucket?: number;
}

const waves = (rank: number, step: number, i: number) =>
  i % 11 === 3 ? 0 : Math.sin(i * 12.9898 + step * 78.233 + rank * 3.1);

async function train({ algorithm, model = () => new Vectors(), ranks, schemes, gradient = waves, bucket = 128 }: Run) {
  const groups = loopback(ranks);
  const chosen = schemes(); // one for all ranks of the process, as long as each has its own group
  try {
    return await Promise.all(
      groups.map(async (group: Group) => {
        const arena = new Arena(model());
        await using optimizer = new Optimizer(arena, group, {
          algorithm: algorithm(),
          bucket,
          compareEvery: 1,
          schemes: chosen,
        });
        let sent = 0;
        for (let step = 0; step < 6; step++) {
          const values = Float32Array.from({ length: arena.gradients.length }, (_, i) => gradient(group.rank, step, i));
          noGrad(() => arena.gradients.copy_(fromTypedArray(values)));
          const { bytes, messages } = await optimizer.step({ lr: 0.01 });
          sent = bytes - 32 * messages;
        }
        const θ = [...((await arena.parameters.toTypedArray()) as Float32Array)];
        return { θ, sent, closed: optimizer.bytesSent() };
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

const schemes: Record<string, (ranks: number) => VoteScheme> = {
  "all-to-all in chunks": () => allToAll({ chunk: 64 }),
  count: () => count(),
  "count in fields of 16 bits": () => count({ width: 16 }),
  "parameter-server": () => parameterServer(),
  "parameter-server-efficient": () => parameterServerEfficient(),
  "hierarchical with one host": (ranks) => hierarchical({ ranksPerHost: ranks }),
  "hierarchical with a host for each rank": () => hierarchical({ ranksPerHost: 1 }),
};

const voters: Record<string, () => Algorithm> = {
  "lion-cub": () => lionCub({ weightDecay: 0.1 }),
  "distributed-lion": () => distributedLion({ weightDecay: 0.1 }),
  "distributed-lion, average": () => distributedLion({ vote: "average" }),
};

describe.each(Object.entries(voters))("%s", (name, algorithm) => {
  /** The parameters where each rank sends its votes to all, by the number of ranks. */
  const wanted = new Map<number, Promise<number[]>>();
  const wantedOf = (ranks: number) => {
    const θ = wanted.get(ranks) ?? train({ algorithm, ranks, schemes: () => ({}) }).then(([first]) => first!.θ);
    wanted.set(ranks, θ);
    return θ;
  };
  const able = Object.entries(schemes).filter(([scheme]) => name === "lion-cub" || !scheme.startsWith("hierarchical"));
  it.each(able)(
    "gives the same parameters when votes are counted by %s, and sends its closed form",
    async (_, scheme) => {
      for (const ranks of [1, 2, 3, 4, 7]) {
        const expected = await wantedOf(ranks);
        const schemes = () => ({ votes: scheme(ranks) });
        for (const { θ, sent, closed } of await train({ algorithm, ranks, schemes })) {
          expect(θ).toEqual(expected);
          expect(sent).toBe(closed);
        }
      }
    },
  );
});

describe("lion-cub with hosts that vote", () => {
  it("follows the hosts' majority: one host of three ranks counts no more than one of a single rank", async () => {
    // Ranks 0, 1 and 2 share a host and ranks 3 and 4 have one each; the odd ones out pull the other way.
    const gradient = (rank: number) => (rank < 3 ? 1 : -1);
    const hosts = [9, 9, 9, 4, 7];
    const algorithm = () => lionCub();
    const flat = await train({ algorithm, ranks: 5, gradient, schemes: () => ({}) });
    const byHost = await train({ algorithm, ranks: 5, gradient, schemes: () => ({ votes: hierarchical({ hosts }) }) });
    for (const { θ } of flat) expect(θ[0]).toBeCloseTo(1 - 6 * 0.01, 6);
    for (const { θ, sent, closed } of byHost) {
      expect(θ[0]).toBeCloseTo(1 + 6 * 0.01, 6);
      expect(θ).toEqual(byHost[0]!.θ);
      expect(sent).toBe(closed);
    }
  });
});

describe("lion-cub with hosts that are dense inside", () => {
  const betas = { beta1: 0.5, beta2: 0.75 };
  /** Sums of these, and of momenta made of them, are exact. */
  const gradient = (rank: number, step: number, i: number) => 12 * (((i * 7 + step * 5 + rank * 4 + (i % 3)) % 16) - 8);
  const dense = (hosts: HierarchicalOptions) => ({ votes: hierarchical({ ...hosts, inside: "dense" }) });

  it("is Lion where all ranks share a host", async () => {
    for (const ranks of [1, 2, 4]) {
      const whole = () => lion({ ...betas, zero: "alternate" });
      const [expected] = await train({ algorithm: whole, ranks, gradient, schemes: () => ({}) });
      const algorithm = () => lionCub(betas);
      for (const { θ } of await train({ algorithm, ranks, gradient, schemes: () => dense({ ranksPerHost: ranks }) }))
        expect(θ).toEqual(expected!.θ);
    }
  });

  it("uses the size of gradients inside a host and one vote of each host, and sends its closed form", async () => {
    // On the first host one large gradient outweighs two small ones; the second host pulls the other way, the third
    // with the first.
    const pull = (rank: number) => [8, -1, -1, -1, 5][rank]!;
    const hosts = [9, 9, 9, 4, 7];
    const run = { algorithm: () => lionCub(), ranks: 5, gradient: pull };
    const bySigns = await train({ ...run, schemes: () => ({ votes: hierarchical({ hosts }) }) });
    for (const { θ } of bySigns) expect(θ[0]).toBeCloseTo(1 + 6 * 0.01, 6);
    for (const { θ, sent, closed } of await train({ ...run, schemes: () => dense({ hosts }) })) {
      expect(θ[0]).toBeCloseTo(1 - 6 * 0.01, 6);
      expect(sent).toBe(closed);
    }
  });

  it("gives the same bits however many buckets there are", async () => {
    // 0.1, 0.2 and 0.3 add up otherwise in another order; here they do against −0.6.
    const gradient = (rank: number, _: number, i: number) =>
      [[0.1, 0.2, 0.3][(rank + i) % 3]!, -0.6][rank === 3 ? 1 : 0]!;
    const run = {
      algorithm: () => lionCub({ ...betas, zero: "plus" }),
      ranks: 4,
      gradient,
      schemes: () => dense({ ranksPerHost: 4 }),
    };
    const cut = await train(run);
    for (const { θ } of await train({ ...run, bucket: 2 ** 20 })) expect(θ).toEqual(cut[0]!.θ);
  });
});

describe.each(["bf16", "f16", "int8"] as const)("means in %s", (type: DenseType) => {
  const means = () => ({ means: dense(type) });

  it.each([
    ["lion", () => lion({ weightDecay: 0.1 })],
    ["adamw", () => adamw()],
  ])(
    "leave the same bits on all ranks of %s, near those of f32, and send their closed form",
    async (name, algorithm) => {
      for (const ranks of [2, 3, 4]) {
        const [full] = await train({ algorithm, ranks, schemes: () => ({}) });
        const half = await train({ algorithm, ranks, schemes: means });
        for (const { θ, sent, closed } of half) {
          expect(θ).toEqual(half[0]!.θ);
          expect(sent).toBe(closed);
        }
        for (const { sent, closed } of await train({ algorithm, ranks, schemes: means, bucket: 1 }))
          expect(sent).toBe(closed); // a bucket of no element, too
        if (name === "adamw") expect(half[0]!.θ).not.toEqual(full!.θ); // Lion's signs mostly hide the rounding
        const far = half[0]!.θ.map((x, i) => Math.abs(x - full!.θ[i]!)).sort((a, b) => a - b);
        // Six steps of 0.01 reach 0.06; a sign near 0 may differ, and most do not.
        // int8 has 0 for what is small beside the largest of its block, which the others have not.
        const most = type === "int8" ? 0.7 : 0.9;
        expect(far[Math.floor(most * far.length)]).toBeLessThan(5e-3);
      }
    },
  );

  if (type === "int8") return; // whose unit is the largest number's 127th, whatever the numbers are

  it("give the parameters of f32 where 16 bits hold the mean exactly", async () => {
    const gradient = (rank: number, step: number, i: number) => ((i * 7 + step * 5 + rank * 4) % 16) - 8;
    const run = { algorithm: () => adamw(), ranks: 4, gradient };
    const [full] = await train({ ...run, schemes: () => ({}) });
    for (const { θ } of await train({ ...run, schemes: means })) expect(θ).toEqual(full!.θ);
  });
});

describe.each(["bf16", "int8"] as const)("what owners compute in %s, and means in it", (type) => {
  const typed = () => ({ means: dense(type), computed: type });
  const model = () => {
    manualSeed(1);
    return matrices();
  };

  it.each([
    ["muon", () => muon()],
    ["dion", () => dion({ rank: 0.5 })],
    ["powersgd under adamw", () => compressed(adamw(), powersgd({ matrixApproximationRank: 2 }))],
  ])(
    "leave the same bits on all ranks of %s, near those of f32, and send their closed form",
    async (name, algorithm) => {
      for (const ranks of [2, 3, 4]) {
        const run = { algorithm, model, ranks, bucket: 2000 };
        const full = await train({ ...run, schemes: () => ({}) });
        const short = await train({ ...run, schemes: typed });
        for (const [rank, { θ, sent, closed }] of short.entries()) {
          expect(θ).toEqual(short[0]!.θ);
          expect(sent).toBe(closed);
          // The factors of the others have short means, which go directly in f32 and by owners else.
          const ratio = sent / full[rank]!.closed;
          if (name === "muon") expect(ratio).toBeCloseTo(type === "bf16" ? 0.5 : 0.25, 1);
          else if (type === "bf16") expect(ratio).toBeLessThan(0.51);
        }
        expect(short[0]!.θ).not.toEqual(full[0]!.θ);
        const far = short[0]!.θ.map((x, i) => Math.abs(x - full[0]!.θ[i]!)).sort((a, b) => a - b);
        expect(far[Math.floor(0.9 * far.length)]).toBeLessThan(2e-2);
      }
    },
  );
});

describe("an optimizer", () => {
  it("throws when it is made where a scheme cannot carry its votes", () => {
    const [group] = loopback(4);
    const make = (algorithm: Algorithm, votes: VoteScheme) =>
      new Optimizer(new Arena(new Vectors()), group!, { algorithm, schemes: { votes } });
    expect(() => make(distributedLion(), hierarchical({ ranksPerHost: 2 }))).toThrow(
      "hierarchical: this vote scheme does not support a tie of zero",
    );
    expect(() => make(lionCub(), count({ width: 2 }))).toThrow("take a width of 4");
    expect(() => make(lionCub(), hierarchical({ hosts: [1, 2] }))).toThrow("the hosts of 2 ranks, and there are 4");
    make(lionCub(), hierarchical({ ranksPerHost: 2 }));
  });
});
