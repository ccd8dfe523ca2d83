import type { Reporter, TestModule, TestSuite } from "vitest/node";

/** The results of a test run. A file that does not load, and a test that never ends, count as failed. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  reasons: Map<string, number>; // number of skipped tests by reason, or by name where no reason is given
}

/**
 * Ends the output of a test run with the reasons why tests were skipped, and with the line `N passed, N failed, N skipped`.
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
    // A hook or the file itself can fail although no test failed.
    const broken = brokenSuites(module);
    total.failed += failedHere + (module.state() === "failed" && failedHere === 0 ? Math.max(1, broken) : broken);
  }
  return total;
}

export function closing({ passed, failed, skipped, reasons }: Tally): string {
  const why = [...reasons].map(([reason, count]) => `skipped ${count}: ${reason}\n`).join("");
  return `${why}${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** The number of suites, including the file itself, whose own hooks failed. */
function brokenSuites(suite: TestModule | TestSuite): number {
  let broken = suite.errors().length > 0 ? 1 : 0;
  for (const child of suite.children.suites()) broken += brokenSuites(child);
  return broken;
}
