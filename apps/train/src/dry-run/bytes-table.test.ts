/**
 * The table of bytes in docs/algorithms.md, made by the closed forms that a dry run counts with (`dry-run.test.ts` and
 * the contract of optimizers compare them with what is really sent). `./terse test bytes-table -u` makes it anew.
 */
import { readFileSync } from "node:fs";
import type { algorithms } from "@terse/optimizers";
import type { Segment } from "@terse/tensor";
import { describe, expect, it } from "vitest";
import { type Recipe, readRecipe } from "../recipe.ts";
import { absentRanks } from "./absent-ranks.ts";
import { type Plan, planOf, shapesOf } from "./plan.ts";

const ranks = 8;
const P = ranks;
const steps = 4000;
const groups = "optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";

interface Form {
  readonly text: string;
  /** What the text says, of the parameters of the model, and of c elements that rank 0 computes for all. */
  readonly bytes: (layers: readonly Layer[], owned: number) => number;
}

interface Layer {
  readonly n: number; // elements
  readonly shape: readonly number[];
  readonly role: Segment["role"];
}

const sum = (layers: readonly Layer[], of: (layer: Layer) => number) =>
  layers.reduce((total, layer) => total + of(layer), 0);
/** (P − 1)/P · bits n/8 */
const perElement = (bits: number, n: number) => ((P - 1) / P) * (bits / 8) * n;
/** (P − 1)/P · bits n/8, summed over all parameters. */
const bitsOf = (text: string, bits: number): Form => ({
  text,
  bytes: (layers) =>
    perElement(
      bits,
      sum(layers, ({ n }) => n),
    ),
});

const isMatrix = ({ shape }: Layer) => shape.length > 1;
/** What is left where AdamW has all but matrices. */
const isInner = ({ role }: Layer) => role === "matrix";
const among = (layers: readonly Layer[], is: (layer: Layer) => boolean, of: (layer: Layer) => number) =>
  sum(layers.filter(is), of);
const not = (is: (layer: Layer) => boolean) => (layer: Layer) => !is(layer);
const denseOf = ({ n }: Layer) => perElement(64, n);

const dense = bitsOf("2 (P − 1)/P · 4 n", 64);
const oneBit = bitsOf("2 (P − 1)/P · n/8, and scales", 2);
const majority = bitsOf("2 (P − 1)/P · n/8", 2);
const nothing: Form = { text: "0", bytes: () => 0 };
const levels = (p: number) => bitsOf(`(P − 1)/P · (${p} + 2) n/8`, p + 2);
const kept = (n: number, ratio: number) => {
  const k = Math.ceil(ratio * n);
  return (P - 1) * k * (4 + Math.ceil(Math.log2(n)) / 8);
};
/** Dion's factors (m, r) and (n, r), r = ⌈min(m, n)/4⌉. */
const rankOf = ({ shape: [m, n] }: Layer) => Math.ceil(Math.min(m!, n!) / 4);
const factors = (layer: Layer) => (layer.shape[0]! + layer.shape[1]!) * rankOf(layer);
/** A sign of −1, 0 or 1 up, and their sum down, from −P to P. */
const ternary = (n: number) => perElement(2 + Math.ceil(Math.log2(2 * P + 1)), n);
/** ⌈log2(2 s + 1)⌉ for s = ⌊127/P⌋ */
const bitsOfLevels = Math.ceil(Math.log2(2 * Math.floor(127 / P) + 1));

interface Row {
  readonly name: keyof typeof algorithms;
  /** Options beside the defaults. */
  readonly given?: readonly string[];
  /** The bytes of each phase. */
  readonly forms: readonly Form[];
  /** What the recipe needs besides, so that the closed form is what it sends. */
  readonly compared?: readonly string[];
}

const large = "model.preset=350M"; // whose messages are so long that none goes directly
const oneBucket = "bucket=1000000000"; // which has more matrices than there are ranks, so that none goes by slices

const rows: readonly Row[] = [
  { name: "sgd", forms: [dense] },
  { name: "adamw", forms: [dense] },
  { name: "lamb", forms: [dense] },
  { name: "lion", forms: [dense] },
  { name: "lion", given: ["exchange.dense=bf16"], forms: [bitsOf("2 (P − 1)/P · 2 n", 32)] },
  {
    name: "lion",
    given: ["exchange.dense=int8"],
    forms: [bitsOf("3 (P − 1)/P · n + (P − 1) · n/128", 24 + P / 16)],
  },
  { name: "signsgd", forms: [majority] },
  { name: "signum", forms: [majority] },
  { name: "distributed-lion", forms: [bitsOf("3 (P − 1)/P · n/8, for an odd P 2", 3)] },
  {
    name: "distributed-lion",
    given: ["optimizer.vote=average"],
    forms: [bitsOf("(P − 1)/P · (1 + ⌈log2(P + 1)⌉) n/8", 1 + Math.ceil(Math.log2(P + 1)))],
  },
  { name: "distributed-lion", given: ["optimizer.zero=hold"], forms: [levels(2)] },
  { name: "lion-cub", forms: [majority] },
  { name: "lion-cub", given: ["optimizer.bits=5"], forms: [levels(5)] },
  {
    name: "lion-cub",
    given: ["optimizer.sumBits=8"],
    forms: [bitsOf("(P − 1)/P · (p + 2) n/8, p = ⌈log2(2 s + 1)⌉ for s = ⌊127/P⌋", bitsOfLevels + 2)],
  },
  {
    name: "lion-cub",
    given: ["optimizer.bits=auto"],
    forms: [bitsOf("the same up to 63 ranks, and for more as for one bit", bitsOfLevels + 2)],
  },
  {
    name: "lion-cub",
    given: ["optimizer.bits=5", "optimizer.sum=direct"],
    forms: [bitsOf("2 (P − 1)/P · w n/8, fields of w = 8 bits for a sum of 15 P", 2 * 8)],
  },
  { name: "lion-cub", given: ["optimizer.bits=5", "optimizer.quantizer=linf"], forms: [levels(5)] },
  {
    name: "lion-cub",
    given: ["optimizer.bits=5", "optimizer.quantizer=linf-logarithmic"],
    forms: [bitsOf("2 (P − 1)/P · 5 n/8, and scales", 2 * 5)],
  },
  { name: "lion-cub", given: ["optimizer.zero=hold"], forms: [levels(2)] },
  { name: "one-bit-adam", forms: [dense, oneBit] },
  { name: "lamb-basic-one-bit", forms: [dense, oneBit] },
  { name: "one-bit-lamb", forms: [dense, oneBit] },
  { name: "zero-one-adam", forms: [dense, oneBit, nothing] },
  {
    name: "demo",
    forms: [
      {
        text: "(P − 1) (⌈k ⌈log2 c²⌉/8⌉ + 4 k) for each chunk of c² elements of a matrix, (⌈k ⌈log2 c⌉/8⌉ + 4 k) of c of a vector",
        bytes: (layers) => {
          const [k, c] = [32, 64];
          const of = (chunk: number, n: number) =>
            (P - 1) * (n / chunk) * (Math.ceil((k * Math.log2(chunk)) / 8) + 4 * k);
          return sum(layers, (layer) => of(isMatrix(layer) ? c ** 2 : c, layer.n));
        },
      },
    ],
  },
  {
    name: "muon",
    compared: [oneBucket],
    given: [groups],
    forms: [
      {
        text: "n' of matrices: 4 (n' − c) up and (P − 1) 4 c down for c owned elements, whole layers; 2 (P − 1)/P · 4 n of the others",
        bytes: (layers, c) =>
          4 * (among(layers, isInner, ({ n }) => n) - c) + (P - 1) * 4 * c + among(layers, not(isInner), denseOf),
      },
    ],
  },
  {
    name: "muon",
    compared: [oneBucket],
    given: [groups, "exchange.dense=int8", "exchange.computed=int8"],
    forms: [
      {
        text: "n' of matrices: (n' − c) up and (P − 1) c down, and of both 1/128 more; 3 (P − 1)/P · n + (P − 1) · n/128 of the others",
        bytes: (layers, c) =>
          (1 + 1 / 128) * (among(layers, isInner, ({ n }) => n) - c + (P - 1) * c) +
          among(layers, not(isInner), ({ n }) => perElement(24 + P / 16, n)),
      },
    ],
  },
  {
    name: "muon",
    compared: [oneBucket],
    given: [groups, "exchange.gradient.name=terngrad"],
    forms: [
      {
        text: "of matrices (P − 1) 4 c down for c owned elements; and the compressed gradients of all",
        bytes: (layers, c) => (P - 1) * 4 * c + sum(layers, ({ n }) => ternary(n)),
      },
    ],
  },
  {
    name: "dion",
    compared: [large, oneBucket],
    given: [groups],
    forms: [
      {
        text: "2 (P − 1)/P · 4 (m + n) r for each m × n matrix of rank r; 2 (P − 1)/P · 4 n of AdamW's parameters",
        bytes: (layers) =>
          among(layers, isInner, (layer) => perElement(64, factors(layer))) + among(layers, not(isInner), denseOf),
      },
    ],
  },
  {
    name: "dion",
    compared: [oneBucket],
    given: [groups, "optimizer.approximate=svd"],
    forms: [
      {
        text: "(P − 1)/P · 4 (m n + (m + n) r) for each matrix; AdamW's as above",
        bytes: (layers) =>
          among(layers, isInner, (layer) => perElement(32, layer.n + factors(layer))) +
          among(layers, not(isInner), denseOf),
      },
    ],
  },
  {
    name: "dion",
    compared: [oneBucket],
    given: [groups, "parallel.weight=2"],
    forms: [
      {
        text: "for W = 2, D = P/W: 2 (W − 1)/W · 4 m n + (W − 1) · 4 r + 2 (D − 1)/D · 4 n r/W + 2 (P − 1)/P · 4 m r; AdamW's as above",
        bytes: (layers) => {
          const [W, D] = [2, P / 2];
          return (
            among(layers, isInner, (layer) => {
              const [m, n] = layer.shape as [number, number];
              const r = rankOf(layer);
              const alongWeight = 2 * ((W - 1) / W) * 4 * (m * n + r);
              return alongWeight + 2 * ((D - 1) / D) * 4 * n * (r / W) + perElement(64, m * r);
            }) + among(layers, not(isInner), denseOf)
          );
        },
      },
    ],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=ef-signsgd"],
    forms: [bitsOf("(P − 1) n/8, and magnitudes", P)],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=qsgd"],
    forms: [bitsOf("(P − 1) (4 n/8 + 4 n/512)", P * (4 + 32 / 512))],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=terngrad"],
    forms: [
      {
        text: "(P − 1)/P · (2 + w) n/8, whole numbers from −P to P in w bits, and scalers",
        bytes: (layers) => sum(layers, ({ n }) => ternary(n)),
      },
    ],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=terngrad", "exchange.gradient.scaler=own"],
    forms: [bitsOf("(P − 1) n/4, and scalers", 2 * P)],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=graddrop"],
    forms: [
      {
        text: "(P − 1) k (4 + ⌈log2 n'⌉/8), k of each layer's n' elements",
        bytes: (layers) => sum(layers, ({ n }) => kept(n, 0.01)),
      },
    ],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=graddrop", "exchange.gradient.threshold=model"],
    forms: [
      {
        text: "(P − 1) k (4 + ⌈log2 n⌉/8), k of the model's elements",
        bytes: (layers) =>
          kept(
            sum(layers, ({ n }) => n),
            0.01,
          ),
      },
    ],
  },
  {
    name: "sgd",
    compared: [large],
    given: ["exchange.gradient.name=dgc", "exchange.gradient.warmup=400"],
    forms: [0.25, 0.0625, 0.015625, 0.004, 0.001].map((ratio) => ({
      text: "(P − 1) k (4 + ⌈log2 n'⌉/8), k of each matrix's n' elements; 2 (P − 1)/P · 4 n of vectors",
      bytes: (layers) => among(layers, isMatrix, ({ n }) => kept(n, ratio)) + among(layers, not(isMatrix), denseOf),
    })),
  },
  {
    name: "adamw",
    compared: [large, oneBucket],
    given: ["exchange.gradient.name=powersgd", "exchange.gradient.matrixApproximationRank=2"],
    forms: [
      {
        text: "u = m r of each m × n matrix and all elements of vectors, c of them owned: by slices 4 (u + c) + 4 (P − 1)/P · u, less 8 for each in its own slice (this small model by owners); 2 (P − 1)/P · 4 n r",
        bytes: (layers, c) => {
          const r = 2;
          const u = among(layers, isMatrix, ({ shape: [m] }) => m! * r) + among(layers, not(isMatrix), ({ n }) => n);
          const inOwnSlice = Math.min(c, u / P); // slices and owners are in the order of the ranks, and this is rank 0
          const bySlices = 4 * (u + c) + 4 * ((P - 1) / P) * u - 8 * inOwnSlice;
          return bySlices + among(layers, isMatrix, ({ shape: [, n] }) => perElement(64, n! * r));
        },
      },
    ],
  },
  {
    name: "adamw",
    given: ["exchange.gradient.name=codec", "exchange.gradient.codec=int8"],
    forms: [bitsOf("2 (P − 1)/P · n, and scales", 16)],
  },
];

interface Planned {
  readonly plan: Plan;
  /** The plan of the model on which the closed forms are compared. */
  readonly compared: Plan;
  readonly layers: readonly Layer[];
  /** Elements that rank 0 computes for all. */
  readonly owned: number;
}

async function plans(): Promise<Planned[]> {
  const planned: Planned[] = [];
  for (const { name, given = [], compared: more = [] } of rows) {
    const overrides = [`optimizer.name=${name}`, `steps=${steps}`, "optimizer.clip=0", "optimizer.clipBy=global"];
    const recipe = (besides: readonly string[]) => readRecipe("gpt-small-lion", [...overrides, ...given, ...besides]);
    const plan = await planOf(recipe([]), ranks);
    const compared = recipe(more);
    planned.push({ plan, compared: more.length > 0 ? await planOf(compared, ranks) : plan, ...layersOf(compared) });
  }
  return planned;
}

function layersOf(recipe: Recipe): Pick<Planned, "layers" | "owned"> {
  const { arena, optimizer } = shapesOf({ ...recipe, device: "cpu" }, absentRanks(ranks), undefined);
  const messages = optimizer.requests(0).flatMap(({ rounds }) => rounds.flat());
  return {
    layers: arena.segments.map(({ length: n, shape, role }) => ({ n, shape, role })),
    owned: messages.reduce((total, message) => {
      if (!("owner" in message) || message.owner !== 0 || message.kind === "meanAtOwner") return total;
      return total + (message.kind === "computedMean" ? (message.result ?? message.n) : message.n);
    }, 0),
  };
}

const grouped = (value: number) => Math.round(value).toLocaleString("en-US");

function label({ name, given = [] }: (typeof rows)[number]): string {
  const options = given.map((option) => (option === groups ? "AdamW for all but matrices" : option.replace("=", ": ")));
  return [`\`${name}\``, ...options.map((option) => (option.includes(".") ? `\`${option}\`` : option))].join(", ");
}

/** The first step and the last one, and how many they are where others come between. */
function stepsOf({ from, to, steps: count }: Plan["phases"][number]): string {
  const range = from === to ? `${from}` : `${grouped(from)} to ${grouped(to)}`;
  return count === to - from + 1 ? range : `${grouped(count)} of ${range}`;
}

function table(all: readonly Planned[]): string {
  const { parameters, denseBytes, memory } = all[0]!.plan;
  const lines = all.flatMap(({ plan: { phases } }, i) => {
    const row = rows[i]!;
    return phases.map((phase, p) => {
      const less = phase.bytes === 0 ? "–" : `${Number((denseBytes / phase.bytes).toPrecision(3))}`;
      const cells = [p === 0 ? label(row) : "", stepsOf(phase), grouped(phase.bytes), less, row.forms[p]!.text];
      return `| ${cells.join(" | ")} |`;
    });
  });
  return [
    `The model of gpt-small, ${grouped(parameters)} parameters (n = ${grouped(memory.parameters / 4)} with pads), on P = ${ranks} ranks, every optimizer with its`,
    `defaults, without clipping, ${grouped(steps)} steps; a warm-up that ends by itself is taken to last a fifth of them. Bytes are those`,
    "that rank 0 sends in a step; *less* is how many times fewer than the f32 mean. The closed forms leave out that short",
    "means go directly (Collectives, above): here those of vectors and of the factors of Dion and PowerSGD, of which more",
    "bytes are sent; and that computed means of fewer matrices than ranks go by slices.",
    "",
    "| optimizer | steps | bytes | less | closed form, about |",
    "|---|---|---|---|---|",
    ...lines,
  ].join("\n");
}

describe("the table of bytes", () => {
  const place = new URL("../../../../docs/algorithms.md", import.meta.url);
  const [begin, end] = ["<!-- bytes: ./terse test bytes-table -u -->\n\n", "\n\n<!-- end of bytes -->"];

  it("in docs/algorithms.md is what the closed forms give (made anew by ./terse test bytes-table -u)", async () => {
    const all = await plans();
    for (const [i, { plan, compared, layers, owned }] of all.entries()) {
      const row = rows[i]!;
      expect(plan.phases.length, label(row)).toBe(row.forms.length);
      for (const [p, { text, bytes }] of row.forms.entries()) {
        const [closed, sent] = [bytes(layers, owned), compared.phases[p]!.bytes];
        expect(Math.abs(sent - closed), `${label(row)}: ${text}`).toBeLessThanOrEqual(0.01 * closed);
      }
    }
    const text = readFileSync(place, "utf8");
    const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    expect(after).toBeGreaterThanOrEqual(before);
    await expect(`${text.slice(0, before)}${table(all)}${text.slice(after)}`).toMatchFileSnapshot(place.pathname);
  });
});
