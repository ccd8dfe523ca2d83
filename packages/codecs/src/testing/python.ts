import { spawnSync } from "node:child_process";

/** A Python with numpy, for comparisons with fresh inputs. */
export const python = process.env["TERSE_PYTHON"];
export const needsPython = python ? "" : " (skipped: TERSE_PYTHON does not name a Python with numpy)";

/** Answers of `vectors.py --live`, one for each request. */
export function askNumpy(requests: readonly object[]): unknown[] {
  const { stdout, stderr, status } = spawnSync(python!, [`${import.meta.dirname}/../../vectors.py`, "--live"], {
    input: requests.map((request) => JSON.stringify(request)).join("\n"),
    encoding: "utf8",
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(`${python} vectors.py --live: ${stderr}`);
  return stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}
