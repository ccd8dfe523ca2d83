import type { Reporter, TestModule, TestSuite } from "vitest/node";

/** What a run came to. Only what passed counts as passed: a file that does not load, or a test that never ended, failed. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  reasons: Map<string, number>; // why tests were skipped (where none was given, the test's name), and how many
}

/**
 * Ends the run's output with `N passed, N failed, N skipped` alone on a line, after everything else that is printed,
 * and before it why tests were skipped.
 */
export default class ClosingLine implements Reporter {
  #tally: Tally = { passed: 0, failed: 0, skipped: 0, reasons: new Map() };

  onInit(): void {
    process.on("exit", () => process.stdout.write(closing(this.#tally)));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    this.#tally = tally(modules, unhandledErrors.length);
  }
}

export function tally(modules: readonly TestModule[], unhandledErrors: number): Tally {
  const total: Tally = { passed: 0, failed: unhandledErrors, skipped: 0, reasons: new Map() };
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const result = test.result();
      if (result.state === "passed") total.passed++;
      else if (result.state === "skipped") {
        total.skipped++;
        const reason = result.note ?? test.fullName;
        total.reasons.set(reason, (total.reasons.get(reason) ?? 0) + 1);
      } else failedHere++;
    }
    // A hook or the file itself can fail where no test did.
    const broken = brokenSuites(module);
    total.failed += failedHere + (module.state() === "failed" && failedHere === 0 ? Math.max(1, broken) : broken);
  }
  return total;
}

export function closing({ passed, failed, skipped, reasons }: Tally): string {
  const why = [...reasons].map(([reason, count]) => `skipped ${count}: ${reason}\n`).join("");
  return `${why}${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** Suites whose own hooks failed, the file's included. */
function brokenSuites(suite: TestModule | TestSuite): number {
  let broken = suite.errors().length > 0 ? 1 : 0;
  for (const child of suite.children.suites()) broken += brokenSuites(child);
  return broken;
}
