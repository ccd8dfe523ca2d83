/** Numbers with their units, as axes and tables show them. */

export type Unit = "" | "steps" | "s" | "B" | "share" | "count";

const large = [
  [1e12, "T"],
  [1e9, "G"],
  [1e6, "M"],
  [1e3, "k"],
] as const;

/**
 * (0.0123, "s") → "12.3 ms", (522900, "B") → "523 kB", (0.25, "share") → "25.0 %", (4e-5, "share") → "< 0.1 %", (1690,
 * "count") → "1.69k". `step` is the distance between two marks of an axis.
 */
export function quantity(value: number, unit: Unit, step?: number): string {
  if (!Number.isFinite(value)) return String(value);
  if (unit === "share" && step === undefined && value > 0 && value < 5e-4) return "< 0.1 %";
  if (unit === "share") return `${digits(100 * value, step && 100 * step)} %`;
  if (unit === "steps") return Math.round(value).toLocaleString("en-US");
  if (unit === "s") return duration(value, step);
  if (unit === "") return digits(value, step);
  const [scale, prefix] = large.find(([least]) => Math.abs(value) >= least) ?? [1, ""];
  const number = digits(value / scale, step && step / scale);
  return unit === "B" ? `${number} ${prefix}B` : `${number}${prefix}`;
}

function duration(seconds: number, step?: number): string {
  const size = Math.abs(seconds);
  if (size === 0) return "0 s";
  if (size < 1e-3) return `${digits(1e6 * seconds, step && 1e6 * step)} µs`;
  if (size < 1) return `${digits(1e3 * seconds, step && 1e3 * step)} ms`;
  if (size < 100) return `${digits(seconds, step)} s`;
  const whole = Math.round(seconds);
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)} h` : `${m}:${two(s)} min`;
}

/** Three digits, or as many as marks at this distance need. */
function digits(value: number, step?: number): string {
  if (step === undefined) value = Number(value.toPrecision(3));
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (step === undefined && (size < 1e-3 || size >= 1e6)) return value.toExponential(2);
  if (step !== undefined && (step < 1e-4 || size >= 1e6)) return value.toExponential(1);
  const places = step === undefined ? 2 - Math.floor(Math.log10(size)) : placesOf(step);
  return value.toFixed(Math.min(8, Math.max(0, places)));
}

/** 20 → 0, 2.5 → 1, 0.025 → 3. */
function placesOf(step: number): number {
  for (let places = 0; places < 8; places++) {
    const scaled = step * 10 ** places;
    if (Math.abs(scaled - Math.round(scaled)) < 1e-6 * scaled) return places;
  }
  return 8;
}
