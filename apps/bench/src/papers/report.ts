/** Writes docs/results/papers.md: a row for each figure and table of the papers. */
import { byCase } from "../measurement.ts";
import type { Provenance, RecordedLine } from "../recording.ts";
import { table } from "../table.ts";
import { isMeasurable, type MeasurableItem, type OtherItem, Readings } from "./item.ts";
import { papers } from "./papers.ts";
import { papersPictures } from "./pictures.ts";

/** Pictures of rows that other commands draw. */
const elsewhere: Readonly<Record<string, string>> = {
  "lion-cub-figure-2": "Figure 2, by `./terse cost`:\n\n![Seconds of a vote by ranks and networks.](vote-costs.svg)",
  "distributed-lion-error-by-bits":
    "The loss against the bits, by `./terse bench local`:\n\n![Last losses of all methods by their bits.](local-bits.svg)",
};

export function papersReport(lines: readonly RecordedLine[], { machine, when }: Provenance): string {
  const values = byCase(lines);
  const rows = papers.map(({ name, source, items }) => {
    const own = Object.entries(items).map(([setting, item]) => ({
      setting,
      item,
      ...verdictOf(item, values.get(setting)),
    }));
    return { name, source, own };
  });
  const all = rows.flatMap(({ own }) => own);
  const count = (verdict: string) => all.filter((row) => row.verdict === verdict).length;
  const tables = rows.map(({ name, source, own }) => {
    const cells = own.map(({ setting, item, verdict, measured, minutes }) => {
      const rule = isMeasurable(item) ? item.rule : "–";
      const said = verdict === "no" ? "**no**" : verdict;
      const cells = [item.what, item.claim, measured, rule, said, minutes, `\`${setting}\``];
      return cells.map((cell) => cell.replaceAll("|", "\\|"));
    });
    const drawn = own.filter(({ setting }) => papersPictures[setting]?.(lines) !== undefined);
    const pictures = drawn.map(({ setting, item }) => `![${item.what}: ${item.claim}](papers-${setting}.svg)\n\n`);
    const others = own.flatMap(({ setting }) => elsewhere[setting] ?? []).map((text) => `${text}\n\n`);
    return `## ${name}

${source}

${table(["item", "claim", "measured here", "counts as seen if", "seen", "minutes", "row"], cells)}

${[...pictures, ...others].join("").trimEnd()}
`;
  });
  return `# Every figure and table of the four papers

Written by \`./terse bench papers --record\`. ${machine}. A row alone: \`./terse bench papers --settings ROW --record\`.

Each row is a figure, a table or a theorem of one of the four papers: its claim, what was measured here, and the rule by
which the claim counts as seen. The rules were written before the runs. Most runs are of a small GPT with 0.5 M parameters
(\`apps/bench/src/convergence/recipe.yaml\`), 4 workers in one process unless a row says otherwise, with the settings that
[convergence](convergence.md) has found. A *no* is a result: the claim was not seen in this small setting.

${count("yes")} yes, ${count("no")} no, ${count("not measurable here")} not measurable here, ${count("not yet measured")} not yet measured.

${tables.join("\n")}
All numbers: [papers.jsonl](papers.jsonl). Recorded: ${when}.
`;
}

function verdictOf(item: MeasurableItem | OtherItem, recorded: ReadonlyMap<string, number> | undefined) {
  if (!isMeasurable(item))
    return { verdict: "not measurable here", measured: `not measurable here: ${item.because}`, minutes: "–" };
  if (!recorded) return { verdict: "not yet measured", measured: "–", minutes: "–" };
  const readings = new Readings(recorded);
  return {
    verdict: item.holds(readings) ? "yes" : "no",
    measured: item.measured(readings),
    minutes: recorded.get("minutes")?.toFixed(1) ?? "–",
  };
}
