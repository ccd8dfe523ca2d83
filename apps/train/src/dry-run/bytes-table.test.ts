/**
 * The table of bytes in docs/algorithms.md, made by the closed forms that a dry run counts with (`dry-run.test.ts` and the contract of optimizers
 * compare them with what is really sent). `./terse test bytes-table -u` makes it anew.
 */
import { readFileSync } from "node:fs";
import { algorithms } from "@terse/optimizers";
import { describe, expect, it } from "vitest";
import { readRecipe } from "../recipe.ts";
import { type Plan, planOf } from "./plan.ts";

const ranks = 8;
const steps = 4000;
const groups = "optimizer.groups=[{ roles: [embedding, head, norm, vector], name: adamw }]";

interface Form {
  readonly text: string;
  /** Bits that an element takes, times (P − 1)/P; undefined where that depends on the shapes of the layers. */
  readonly bits?: number;
}

const dense: Form = { text: "2 (P − 1)/P · 4 n", bits: 64 };
const oneBit: Form = { text: "2 (P − 1)/P · n/8, and scales", bits: 2 };
const nothing: Form = { text: "0", bits: 0 };
const largest: Form = { text: "(P − 1) k (4 + ⌈log2 n'⌉/8), k of each layer's n' elements" };
const levels = (p: number): Form => ({ text: `(P − 1)/P · (${p} + 2) n/8`, bits: p + 2 });

/** Options beside the defaults, and the closed form of each phase. */
const rows: readonly { name: keyof typeof algorithms; given?: readonly string[]; forms: readonly Form[] }[] = [
  { name: "sgd", forms: [dense] },
  { name: "adamw", forms: [dense] },
  { name: "lamb", forms: [dense] },
  { name: "lion", forms: [dense] },
  { name: "lion", given: ["exchange.dense=bf16"], forms: [{ text: "2 (P − 1)/P · 2 n", bits: 32 }] },
  {
    name: "lion",
    given: ["exchange.dense=int8"],
    forms: [{ text: "3 (P − 1)/P · n + (P − 1) · n/128", bits: 24 + ranks / 16 }],
  },
  { name: "signsgd", forms: [{ ...oneBit, text: "2 (P − 1)/P · n/8" }] },
  { name: "signum", forms: [{ ...oneBit, text: "2 (P − 1)/P · n/8" }] },
  { name: "distributed-lion", forms: [{ text: "3 (P − 1)/P · n/8, for an odd P 2", bits: 3 }] },
  {
    name: "distributed-lion",
    given: ["optimizer.vote=average"],
    forms: [{ text: "(P − 1)/P · (1 + ⌈log2(P + 1)⌉) n/8", bits: 5 }],
  },
  { name: "distributed-lion", given: ["optimizer.zero=hold"], forms: [levels(2)] },
  { name: "lion-cub", forms: [{ ...oneBit, text: "2 (P − 1)/P · n/8" }] },
  { name: "lion-cub", given: ["optimizer.bits=5"], forms: [levels(5)] },
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
      },
    ],
  },
  {
    name: "muon",
    given: [groups],
    forms: [
      {
        text: "n' of matrices: 4 (n' − c) up and (P − 1) 4 c down for c owned elements, whole layers; 2 (P − 1)/P · 4 n of the others",
      },
    ],
  },
  {
    name: "muon",
    given: [groups, "exchange.gradient.name=terngrad"],
    forms: [{ text: "of matrices (P − 1) 4 c down for c owned elements; and the compressed gradients of all" }],
  },
  {
    name: "dion",
    given: [groups],
    forms: [
      { text: "2 (P − 1)/P · 4 (m + n) r for each m × n matrix of rank r; 2 (P − 1)/P · 4 n of AdamW's parameters" },
    ],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=ef-signsgd"],
    forms: [{ text: "(P − 1) n/8, and magnitudes", bits: ranks }],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=qsgd"],
    forms: [{ text: "(P − 1) (4 n/8 + 4 n/512)", bits: ranks * (4 + 32 / 512) }],
  },
  {
    name: "sgd",
    given: ["exchange.gradient.name=terngrad"],
    forms: [{ text: "(P − 1)/P · (2 + w) n/8, whole numbers from −P to P in w bits, and scalers", bits: 2 + 5 }],
  },
  { name: "sgd", given: ["exchange.gradient.name=graddrop"], forms: [largest] },
  {
    name: "sgd",
    given: ["exchange.gradient.name=dgc", "exchange.gradient.warmup=400"],
    forms: [largest, largest, largest, largest, largest],
  },
  {
    name: "adamw",
    given: ["exchange.gradient.name=powersgd", "exchange.gradient.matrixApproximationRank=2"],
    forms: [{ text: "2 (P − 1)/P · 4 (m + n) r for each m × n matrix; 2 (P − 1)/P · 4 n of vectors" }],
  },
  {
    name: "adamw",
    given: ["exchange.gradient.name=codec", "exchange.gradient.codec=int8"],
    forms: [{ text: "2 (P − 1)/P · n, and scales", bits: 16 }],
  },
];

async function plans(): Promise<Plan[]> {
  const made: Plan[] = [];
  for (const { name, given = [] } of rows) {
    const overrides = [`optimizer.name=${name}`, `steps=${steps}`, "optimizer.clip=0", "optimizer.clipBy=global"];
    made.push(await planOf(readRecipe("gpt-small-lion-cub", [...overrides, ...given]), ranks));
  }
  return made;
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

function table(all: readonly Plan[]): string {
  const { parameters, denseBytes, memory } = all[0]!;
  const lines = all.flatMap(({ phases }, i) => {
    const row = rows[i]!;
    return phases.map((phase, p) => {
      const less = phase.bytes === 0 ? "–" : `${Number((denseBytes / phase.bytes).toPrecision(3))}`;
      const cells = [p === 0 ? label(row) : "", stepsOf(phase), grouped(phase.bytes), less, row.forms[p]!.text];
      return `| ${cells.join(" | ")} |`;
    });
  });
  return [
    `The small GPT of the default recipe, ${grouped(parameters)} parameters (n = ${grouped(memory.parameters / 4)} with pads), on P = ${ranks} ranks, every optimizer with its`,
    `defaults, without clipping, ${grouped(steps)} steps; a warm-up that ends by itself is taken to last a fifth of them. Bytes are those that rank 0`,
    "sends in a step; *less* is how many times fewer than the f32 mean.",
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
    for (const [i, { phases, memory }] of all.entries()) {
      const { name, forms } = rows[i]!;
      expect(phases.length, name).toBe(forms.length);
      for (const [p, { bits }] of forms.entries()) {
        if (bits === undefined) continue;
        const closed = ((ranks - 1) / ranks) * (bits / 8) * (memory.parameters / 4);
        expect(Math.abs(phases[p]!.bytes - closed), `${name}, phase ${p}`).toBeLessThanOrEqual(0.01 * closed);
      }
    }
    const text = readFileSync(place, "utf8");
    const [before, after] = [text.indexOf(begin) + begin.length, text.indexOf(end)];
    expect(after).toBeGreaterThanOrEqual(before);
    await expect(`${text.slice(0, before)}${table(all)}${text.slice(after)}`).toMatchFileSnapshot(place.pathname);
  });

  it("has a row of every optimizer", () => {
    expect([...new Set(rows.map(({ name }) => name))].sort()).toEqual(Object.keys(algorithms).sort());
  });
});
