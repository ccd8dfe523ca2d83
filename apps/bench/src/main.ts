/** `./terse bench SUITE [--settings A,B] [--json FILE|-] [--record]`: measurements as one JSON object a line, and as text for people. */
import { closeSync, writeFileSync, writeSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { readArguments, usageOf } from "./arguments.ts";
import { bars } from "./codecs/bars.ts";
import { codecs } from "./codecs/codecs.ts";
import { collectives } from "./collectives/collectives.ts";
import { convergence } from "./convergence/convergence.ts";
import { costModel } from "./cost-model/cost-model.ts";
import { predictions } from "./cost-model/predictions.ts";
import { report } from "./cost-model/report.ts";
import { exchange } from "./exchange/exchange.ts";
import { exchangePicture, exchangeReport } from "./exchange/report.ts";
import type { Measurement } from "./measurement.ts";
import { openOutput } from "./output.ts";
import { merged, type Provenance, provenance, type RecordedLine, readLines, written } from "./recording.ts";
import { step } from "./step/step.ts";
import type { Suite } from "./suite.ts";
import { CaseWriter } from "./text.ts";
import { trainPicture, trainReport } from "./train/report.ts";
import { train } from "./train/train.ts";

/** What a recorded run looks like. */
const pictures: Record<string, (measurements: readonly Measurement[]) => string> = {
  codecs: bars,
  "cost-model": predictions,
  exchange: exchangePicture,
  train: trainPicture,
};

/** What a recorded run says beside its picture. */
const reports: Record<string, (measurements: readonly Measurement[], provenance: Provenance) => string> = {
  "cost-model": report,
  exchange: exchangeReport,
  train: trainReport,
};

const suites: Record<string, Suite> = {
  step: { step },
  codecs: { codecs },
  collectives,
  convergence: { convergence },
  "cost-model": costModel,
  exchange,
  train,
};

const subjects: Record<keyof typeof suites, string> = {
  step: "what a training step costs, beside PyTorch",
  codecs: "encoding and decoding, beside plain streaming through memory",
  collectives: "how much of an emulated link they use, and how long few bytes take",
  convergence: "losses by steps and by bytes sent, 1 bit beside 32",
  "cost-model": "how long exchanges should take, and how long they do",
  exchange: "until a vector is the same on all ranks, beside Gloo and PyTorch",
  train: "the small GPT on slow links, beside PyTorch's DDP",
};

async function main(argv: readonly string[]): Promise<void> {
  const asked = readArguments(argv, suites);
  if (!asked) {
    process.stdout.write(usageOf(suites, subjects));
    process.exitCode = argv.includes("--help") || argv.includes("-h") ? 0 : 1;
    return;
  }
  const { suite, settings, json, record } = asked;
  const terminal = json === "-" ? process.stderr : process.stdout;
  const file = json === undefined || json === "-" ? undefined : openOutput("--json", json);
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, Node ${process.versions.node}`;
  terminal.write(`${machine}\n`);
  const cases = new CaseWriter((text) => terminal.write(text), Math.min(terminal.columns ?? 80, 120));
  for (const setting of settings) {
    const recorded = `${new Date().toISOString().slice(0, 16)}Z`;
    const lines: RecordedLine[] = [];
    try {
      for await (const measurement of suites[suite]![setting]!()) {
        const line = { bench: suite, setting, recorded, machine, ...measurement };
        lines.push(line);
        if (json === "-") process.stdout.write(written([line]));
        else if (file !== undefined) writeSync(file, written([line]));
        cases.add(measurement);
      }
    } catch (error) {
      // What cannot be measured here takes nothing from the others.
      process.stderr.write(`error: ${suite}, ${setting}: ${(error as Error).message}\n`);
      process.exitCode = 1;
      continue;
    } finally {
      cases.end();
    }
    if (record) keep(suite, lines); // each as soon as it is there: a long run may be interrupted
  }
  if (file !== undefined) closeSync(file);
}

/** Into docs/results, beside the settings that were recorded before. */
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
