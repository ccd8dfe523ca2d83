/** 522900 → "522.9 kB": powers of 1000, as network rates are counted. */
export function bytesText(bytes: number): string {
  const units = ["B", "kB", "MB", "GB", "TB"];
  let unit = 0;
  while (bytes >= 1000 && unit < units.length - 1) {
    bytes /= 1000;
    unit++;
  }
  return `${unit === 0 ? bytes : bytes.toFixed(bytes < 10 ? 2 : 1)} ${units[unit]}`;
}

/** (522900, "byte") → "522.9 kB", (60000, "image") → "60,000 images", (2, "batch") → "2 batches". */
export function amountText(count: number, unit: string): string {
  if (unit === "byte") return bytesText(count);
  const ending = count === 1 ? "" : unit.endsWith("ch") ? "es" : "s";
  return `${count.toLocaleString("en-US")} ${unit}${ending}`;
}

/** 95 → "1:35", 4000 → "1:06:40". */
export function durationText(seconds: number): string {
  const whole = Math.max(0, Math.round(seconds));
  const two = (n: number) => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h > 0 ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}
