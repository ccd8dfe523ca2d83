/** Settings and links of measurements in words. */

/** "16 Mi ×2 100mbit emulated" → "2 ranks, 100 Mbit/s, emulated". */
export function settingText(setting: string): string {
  const [, ranks, where] = /×(\d+) (.*)$/.exec(setting) ?? [];
  if (ranks === undefined) return setting;
  return `${ranks} ranks, ${rateText(where!).replace("loopback TCP", "TCP on one machine").replace(" emulated", ", emulated")}`;
}

/** "100mbit,1ms" → "100 Mbit/s, 1 ms". */
export function rateText(link: string): string {
  return link
    .replace(
      /(\d)([kmg])bit/,
      (_, digit: string, unit: string) => `${digit} ${unit === "k" ? unit : unit.toUpperCase()}bit/s`,
    )
    .replace(/,([\d.]+)(us|ms)/, (_, value, unit) => `, ${value} ${unit.replace("u", "µ")}`);
}
