/** A run's folder for tests, removed at the end of the test. */
import { appendFileSync, mkdirSync, mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface TemporaryRun extends Disposable {
  readonly folder: string;
  add(...lines: readonly (object | string)[]): void;
  /** Writes metrics.jsonl anew, as a resumed run does. */
  rewrite(...lines: readonly object[]): void;
}

export function temporaryRun(name = "a-run", recipe: object | null = { steps: 100 }): TemporaryRun {
  const above = mkdtempSync(join(tmpdir(), "terse-page-"));
  const folder = join(above, name);
  mkdirSync(folder);
  const metrics = join(folder, "metrics.jsonl");
  const texts = (lines: readonly (object | string)[]) =>
    lines.map((line) => (typeof line === "string" ? line : `${JSON.stringify(line)}\n`)).join("");
  if (recipe) writeFileSync(join(folder, "recipe.json"), JSON.stringify(recipe));
  return {
    folder,
    add: (...lines) => appendFileSync(metrics, texts(lines)),
    rewrite(...lines) {
      writeFileSync(`${metrics}.tmp`, texts(lines));
      renameSync(`${metrics}.tmp`, metrics);
    },
    [Symbol.dispose]: () => rmSync(above, { recursive: true, force: true }),
  };
}

/** A line of training with what a test needs of it. */
export function trainingLine(step: number, more: object = {}): object {
  return { step, "train/loss": 4 - step / 100, step_seconds: 0.1, sent_bytes: 1000, exposed_fraction: 0.25, ...more };
}
