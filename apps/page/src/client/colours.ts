/**
 * Colours that people with any colour vision can tell apart: those of Okabe and Ito ("Color Universal Design", 2008),
 * made darker on white or lighter on black where their contrast is below 3 : 1. The lines of runs also differ by their
 * dashes.
 */
const light = ["#0072b2", "#c04f00", "#007d5c", "#a8458b", "#8a6d00", "#3d3d9e", "#1b8bc4", "#6b6b6b"];
const dark = ["#56b4e9", "#ff8a3d", "#2fc79b", "#e58fc4", "#e6c24a", "#a9a4ff", "#9fd8ff", "#b5b5b5"];
export const dashes = [[], [8, 4], [2, 3], [10, 3, 2, 3]] as const;

const darkMode = matchMedia("(prefers-color-scheme: dark)");

export const colour = (i: number) => (darkMode.matches ? dark : light)[i % light.length]!;
export const dash = (i: number) => dashes[Math.floor(i / light.length) % dashes.length]!;

/** A colour of page.css. */
export const named = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

export function onTheme(change: () => void): void {
  darkMode.addEventListener("change", change);
}
