/** Measurements as text: a line with the case, and its metrics below it, as wide as the terminal. */
import type { Measurement } from "./measurement.ts";

/** Four digits, in a unit that keeps them short: 186.2 ms, 2.10 MB, 31.8 ×, 96.1 %. */
export function valueText(value: number, unit: string): string {
  if (unit === "fraction") return `${(100 * value).toFixed(1)} %`;
  if (unit === "ratio") return `${short(value)} ×`;
  if (unit === "B" && Math.abs(value) >= 1e6) return `${short(value / 1e6)} MB`;
  if (unit === "ms" && Math.abs(value) >= 1e4) return `${short(value / 1e3)} s`;
  if (unit === "ms" && value !== 0 && Math.abs(value) < 0.1) return `${short(value * 1e3)} µs`;
  return unit ? `${short(value)} ${unit}` : short(value);
}

function short(value: number): string {
  return Number.isInteger(value) || Math.abs(value) >= 1e4 ? value.toFixed(0) : String(Number(value.toPrecision(4)));
}

/** All metrics of one case; on the line of its name if there is room. */
function caseText(name: string, measurements: readonly Measurement[], columns: number): string {
  const lines: string[] = [];
  for (const { metric, value, unit } of measurements) {
    const words = `${metric.replaceAll("_", " ")} ${valueText(value, unit)}`;
    const longer = `${lines.at(-1)} · ${words}`;
    if (lines.length > 0 && longer.length + 2 <= columns) lines[lines.length - 1] = longer;
    else lines.push(words);
  }
  const beside = `${name.padEnd(38)}  ${lines[0]}`;
  if (lines.length === 1 && beside.length <= columns) return `${beside}\n`;
  return `${name}\n${lines.map((line) => `  ${line}\n`).join("")}`;
}

/** Writes each case when the next one begins. */
export class CaseWriter {
  readonly #write: (text: string) => void;
  readonly #columns: number;
  #measured: Measurement[] = [];

  constructor(write: (text: string) => void, columns: number) {
    this.#write = write;
    this.#columns = columns;
  }

  add(measurement: Measurement): void {
    if (this.#measured[0] && this.#measured[0].case !== measurement.case) this.end();
    this.#measured.push(measurement);
  }

  end(): void {
    if (this.#measured.length > 0) this.#write(caseText(this.#measured[0]!.case, this.#measured, this.#columns));
    this.#measured = [];
  }
}
