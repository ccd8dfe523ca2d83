/**
 * `./terse bench SUITE [--settings A,B] [--json FILE|-] [--svg FILE] [--record]`: prints measurements as text, and
 * writes them as JSON lines.
 */
import { closeSync, rmSync, statSync, writeFileSync } from "node:fs";
import { columnsOf, linesOfError, printText, watchOutput } from "@terse/options";
import { recipeKeys } from "@terse/train/recipe-schema";
import { readArguments, usageOf } from "./arguments.ts";
import { convergenceReport } from "./convergence/report.ts";
import { report } from "./cost-model/report.ts";
import { exchangeReport } from "./exchange/report.ts";
import { gpuReport } from "./gpu/report.ts";
import { forgetKeptRuns } from "./kept-runs.ts";
import { localReport } from "./local/report.ts";
import { machineText } from "./machine.ts";
import { modelsReport } from "./models/report.ts";
import { optimizersReport } from "./optimizers/report.ts";
import { openOutput, writeOutput } from "./output.ts";
import { papersReport } from "./papers/report.ts";
import { furtherPictures, pictures } from "./pictures.ts";
import { recipeReport } from "./recipe/report.ts";
import { linesFrom, merged, type Provenance, provenance, type RecordedLine, readLines, written } from "./recording.ts";
import { subjects, suites } from "./suites.ts";
import { CaseWriter } from "./text.ts";
import { trainReport } from "./train/report.ts";

/** The reports of recorded runs, by suite. */
const reports: Record<string, (lines: readonly RecordedLine[], provenance: Provenance) => string> = {
  convergence: convergenceReport,
  "cost-model": report,
  exchange: exchangeReport,
  gpu: gpuReport,
  local: localReport,
  models: modelsReport,
  optimizers: optimizersReport,
  papers: papersReport,
  recipe: recipeReport,
  train: trainReport,
};

async function main(argv: readonly string[]): Promise<void> {
  const recipes = { convergence: recipeKeys, local: recipeKeys, models: recipeKeys, recipe: recipeKeys };
  const args = readArguments(argv, suites, recipes, pictures);
  if (!args) {
    process.stdout.write(usageOf(suites, subjects));
    process.exitCode = argv.includes("--help") || argv.includes("-h") ? 0 : 1;
    return;
  }
  const { suite, settings, json, svg, record, from, overrides } = args;
  const given = from === undefined ? undefined : linesFrom(from, suite);
  const terminal = json === "-" ? process.stderr : process.stdout;
  const file = json === undefined || json === "-" ? undefined : openOutput("--json", json);
  if (svg !== undefined) closeSync(openOutput("--svg", svg, "a")); // an earlier one stays until this one is drawn
  const all: RecordedLine[] = [];
  const machine = machineText();
  if (!given) terminal.write(`${machine}\n`);
  const cases = new CaseWriter((text) => terminal.write(text), Math.min(columnsOf(terminal), 120));
  for (const setting of settings) {
    const recorded = `${new Date().toISOString().slice(0, 16)}Z`;
    const lines: RecordedLine[] = [];
    try {
      const measurements = given?.filter((line) => line.setting === setting) ?? suites[suite]![setting]!({ overrides });
      for await (const measurement of measurements) {
        const line = { bench: suite, setting, recorded, machine, ...measurement };
        lines.push(line);
        if (json === "-") process.stdout.write(written([line]));
        else if (file !== undefined) writeOutput("--json", json!, file, written([line]));
        cases.add(measurement);
      }
    } catch (error) {
      // The other settings are measured all the same.
      printText(`error: ${suite}, ${setting}: ${linesOfError(error).join("\n")}`, process.stderr);
      process.exitCode = 1;
      continue;
    } finally {
      cases.end();
    }
    // After every setting, because a long run may be interrupted.
    if (record) keep(suite, lines);
    if (!given && overrides.length === 0) forgetKeptRuns(`${suite}/${setting}`);
    all.push(...lines);
    const picture = svg === undefined ? undefined : pictures[suite]!(all, overrides);
    if (picture !== undefined) writeOutput("--svg", svg!, svg!, picture);
  }
  if (file !== undefined) closeSync(file);
  if (svg === undefined || pictures[suite]!(all, overrides) !== undefined) return;
  if (statSync(svg).size === 0) rmSync(svg);
  throw new Error(`--svg: nothing was measured that the picture of ${suite} shows, so ${svg} was not drawn`);
}

function draw(file: string | URL, picture: string | undefined): void {
  if (picture !== undefined) writeFileSync(file, picture);
}

/** Writes lines, picture and report to docs/results; settings that were not measured now keep their lines. */
function keep(suite: string, now: readonly RecordedLine[]): void {
  const place = (ending: string) => new URL(`../../../docs/results/${suite}.${ending}`, import.meta.url);
  const lines = merged(readLines(place("jsonl")), now, Object.keys(suites[suite]!));
  writeFileSync(place("jsonl"), written(lines));
  const [picture, report] = [pictures[suite], reports[suite]];
  if (picture) draw(place("svg"), picture(lines, []));
  for (const [end, further] of Object.entries(furtherPictures[suite] ?? {}))
    draw(new URL(`../../../docs/results/${suite}-${end}.svg`, import.meta.url), further(lines, []));
  if (report) writeFileSync(place("md"), report(lines, provenance(lines)));
}

watchOutput();
try {
  await main(process.argv.slice(2));
} catch (error) {
  printText(`error: ${linesOfError(error).join("\n")}`, process.stderr);
  process.exitCode = 1;
}
