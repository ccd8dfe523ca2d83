/** `./terse bench SUITE [--json FILE|-]`: measurements as one JSON object a line, and a table for people. */
import { closeSync, openSync, writeFileSync, writeSync } from "node:fs";
import { availableParallelism, cpus } from "node:os";
import { choose, OptionsError } from "@terse/options";
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
import { step } from "./step/step.ts";
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
const reports: Record<string, (measurements: readonly Measurement[], machine: string) => string> = {
  "cost-model": report,
  exchange: exchangeReport,
  train: trainReport,
};

/** A suite yields its measurements as it goes. */
const suites: Record<string, () => AsyncGenerator<Measurement>> = {
  step,
  codecs,
  collectives,
  convergence,
  "cost-model": costModel,
  exchange,
  train,
};

const usage = `usage: ./terse bench SUITE [--json FILE] [--record]     (- for standard output; --record: into docs/results, with its picture)
suites: ${Object.keys(suites).join(", ")}
`;

async function main(argv: readonly string[]): Promise<void> {
  const words = argv.filter((word, i) => !word.startsWith("--") && argv[i - 1] !== "--json");
  if (argv.includes("--help") || words.length === 0) {
    process.stdout.write(usage);
    process.exitCode = words.length === 0 && !argv.includes("--help") ? 1 : 0;
    return;
  }
  const json = jsonTarget(argv);
  const suite = choose("suite", words[0]!, suites);
  const table = json === "-" ? process.stderr : process.stdout;
  const file = json === undefined || json === "-" ? undefined : openSync(json, "w");
  const lines: string[] = [];
  const measurements: Measurement[] = [];
  const machine = `${cpus()[0]?.model.trim()}, ${availableParallelism()} cores, Node ${process.versions.node}`;
  table.write(`${machine}\n`);
  for await (const measurement of suite()) {
    const line = `${JSON.stringify({ bench: words[0], ...measurement })}\n`;
    lines.push(line);
    measurements.push(measurement);
    if (json === "-") process.stdout.write(line);
    else if (file !== undefined) writeSync(file, line);
    const { case: what, metric, value, unit } = measurement;
    table.write(`${what.padEnd(34)} ${metric.padEnd(24)} ${value.toPrecision(4).padStart(10)} ${unit}\n`);
  }
  if (file !== undefined) closeSync(file);
  if (!argv.includes("--record")) return;
  const recorded = (name: string) => new URL(`../../../docs/results/${name}`, import.meta.url);
  writeFileSync(recorded(`${words[0]}.jsonl`), lines.join(""));
  const picture = pictures[words[0]!];
  if (picture) writeFileSync(recorded(`${words[0]}.svg`), picture(measurements));
  const inWords = reports[words[0]!];
  if (inWords) writeFileSync(recorded(`${words[0]}.md`), inWords(measurements, machine));
}

function jsonTarget(argv: readonly string[]): string | undefined {
  const at = argv.findIndex((word) => word === "--json" || word.startsWith("--json="));
  if (at < 0) return undefined;
  const value = argv[at]!.includes("=") ? argv[at]!.slice("--json=".length) : argv[at + 1];
  if (!value) throw new OptionsError(["--json needs a file, or - for standard output"]);
  return value;
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.stderr.write(`error: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
}
