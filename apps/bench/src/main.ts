/** `./terse bench SUITE [--settings A,B] [--json FILE|-] [--record]`: prints measurements as text, and writes them as JSON lines. */
import { closeSync, writeFileSync, writeSync } from "node:fs";
import { cpus } from "node:os";
import { availableProcessors } from "@terse/native-loader";
import { recipeKeys } from "@terse/train/recipe";
import { readArguments, usageOf } from "./arguments.ts";
import { bars } from "./codecs/bars.ts";
import { convergencePicture, convergenceReport } from "./convergence/report.ts";
import { predictions } from "./cost-model/predictions.ts";
import { report } from "./cost-model/report.ts";
import { exchangePicture, exchangeReport } from "./exchange/report.ts";
import { modelsReport } from "./models/report.ts";
import { optimizersReport } from "./optimizers/report.ts";
import { openOutput } from "./output.ts";
import { recipePicture, recipeReport } from "./recipe/report.ts";
import { merged, type Provenance, provenance, type RecordedLine, readLines, written } from "./recording.ts";
import { subjects, suites } from "./suites.ts";
import { CaseWriter } from "./text.ts";
import { trainPicture, trainReport } from "./train/report.ts";

/** The pictures of recorded runs, by suite. */
const pictures: Record<string, (lines: readonly RecordedLine[]) => string> = {
  codecs: bars,
  convergence: convergencePicture,
  "cost-model": predictions,
  exchange: exchangePicture,
  recipe: recipePicture,
  train: trainPicture,
};

/** The reports of recorded runs, by suite. */
const reports: Record<string, (lines: readonly RecordedLine[], provenance: Provenance) => string> = {
  convergence: convergenceReport,
  "cost-model": report,
  exchange: exchangeReport,
  models: modelsReport,
  optimizers: optimizersReport,
  recipe: recipeReport,
  train: trainReport,
};

async function main(argv: readonly string[]): Promise<void> {
  const args = readArguments(argv, suites, { convergence: recipeKeys, models: recipeKeys, recipe: recipeKeys });
  if (!args) {
    process.stdout.write(usageOf(suites, subjects));
    process.exitCode = argv.includes("--help") || argv.includes("-h") ? 0 : 1;
    return;
  }
  const { suite, settings, json, record, overrides } = args;
  const terminal = json === "-" ? process.stderr : process.stdout;
  const file = json === undefined || json === "-" ? undefined : openOutput("--json", json);
  const machine = `${cpus()[0]?.model.trim()}, ${availableProcessors()} cores, Node ${process.versions.node}`;
  terminal.write(`${machine}\n`);
  const cases = new CaseWriter((text) => terminal.write(text), Math.min(terminal.columns ?? 80, 120));
  for (const setting of settings) {
    const recorded = `${new Date().toISOString().slice(0, 16)}Z`;
    const lines: RecordedLine[] = [];
    try {
      for await (const measurement of suites[suite]![setting]!({ overrides })) {
        const line = { bench: suite, setting, recorded, machine, ...measurement };
        lines.push(line);
        if (json === "-") process.stdout.write(written([line]));
        else if (file !== undefined) writeSync(file, written([line]));
        cases.add(measurement);
      }
    } catch (error) {
      // The other settings are measured all the same.
      process.stderr.write(`error: ${suite}, ${setting}: ${(error as Error).message}\n`);
      process.exitCode = 1;
      continue;
    } finally {
      cases.end();
    }
    if (record) keep(suite, lines); // after every setting, because a long run may be interrupted
  }
  if (file !== undefined) closeSync(file);
}

/** Writes lines, picture and report to docs/results; settings that were not measured now keep their lines. */
function keep(suite: string, now: readonly RecordedLine[]): void {
  const place = (ending: string) => new URL(`../../../docs/results/${suite}.${ending}`, import.meta.url);
  const lines = merged(readLines(place("jsonl")), now, Object.keys(suites[suite]!));
  writeFileSync(place("jsonl"), written(lines));
  const [picture, report] = [pictures[suite], reports[suite]];
  if (picture) writeFileSync(place("svg"), picture(lines));
  if (report) writeFileSync(place("md"), report(lines, provenance(lines)));
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
