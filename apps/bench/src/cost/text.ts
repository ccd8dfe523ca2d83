/** Numbers and tables of `./terse cost`. */
import { implementations, type Panel } from "./projection.ts";

/** 0.00123 → "1.2 ms". */
export function secondsText(seconds: number): string {
  const units: [string, number, from?: number][] = [
    ["ks", 1e3, 1e4], // keeps the labels of a picture's axis short
    ["s", 1],
    ["ms", 1e-3],
    ["µs", 1e-6],
    ["ns", 1e-9],
  ];
  const [unit, size] = units.find(([, size, from = size]) => seconds >= from) ?? units.at(-1)!;
  const value = seconds / size;
  if (value >= 99_999.5 || value < 0.01) return `${value.toExponential(1).replace(/\.0|\+/g, "")} ${unit}`;
  return `${value >= 99.5 ? value.toFixed(0) : value.toPrecision(2)} ${unit}`;
}

/** 774 000 000 → "774 M". */
export function countText(count: number): string {
  const units: [string, number][] = [
    ["G", 1e9],
    ["M", 1e6],
    ["k", 1e3],
  ];
  const [unit, size] = units.find(([, size]) => count >= 0.9995 * size) ?? ["", 1];
  return `${Number((count / size).toPrecision(3))}${unit && ` ${unit}`}`;
}

/** A panel as a table, with at most six numbers of ranks, and no wider than `columns`. */
export function tableText({ network, parameters, ranks, seconds, crossing }: Panel, columns = 120): string {
  const width = Math.max(...Object.values(implementations).map(({ title }) => title.length));
  const stride = Math.ceil(ranks.length / Math.max(1, Math.min(6, Math.floor((columns - width - 1) / 9))));
  const shown = ranks.map((_, i) => i).filter((i) => (ranks.length - 1 - i) % stride === 0);
  const row = (title: string, cells: readonly string[]) =>
    `${title.padEnd(width + 1)}${cells.map((cell) => ` ${cell}`.padStart(9)).join("")}`;
  const fastest = ranks.map((_, i) => Math.min(...Object.values(seconds).map((times) => times[i]!)));
  const lines = Object.entries(implementations).map(([name, { title }]) =>
    row(
      title,
      shown.map((i) => `${seconds[name]![i] === fastest[i] ? "*" : ""}${secondsText(seconds[name]![i]!)}`),
    ),
  );
  return [
    `${countText(parameters)} parameters, ${network.name}`,
    row(
      "ranks",
      shown.map((i) => `${ranks[i]}`),
    ),
    ...lines,
    row(
      "direct beats compressed below",
      shown.map((i) => (crossing[i] === null ? "–" : countText(crossing[i]!))),
    ),
    "",
  ].join("\n");
}
