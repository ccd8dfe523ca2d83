import type { Reporter, TestModule, TestSuite } from "vitest/node";

/** The results of a test run. A file that does not load, and a test that never ends, count as failed. */
export interface Tally {
  passed: number;
  failed: number;
  skipped: number;
  reasons: Map<string, number>; // number of skipped tests by reason, or by name where no reason is given
  failures: string[]; // file, name and first line of the error of what failed
}

/**
 * Ends the output of a test run with the reasons why tests were skipped, with what failed, and with the line
 * `N passed, N failed, N skipped`.
 */
export default class ClosingLine implements Reporter {
  #tally: Tally = { passed: 0, failed: 0, skipped: 0, reasons: new Map(), failures: [] };

  onInit(): void {
    process.on("exit", () => process.stdout.write(closing(this.#tally)));
  }

  onTestRunEnd(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): void {
    this.#tally = tally(modules, unhandledErrors);
  }
}

export function tally(modules: readonly TestModule[], unhandledErrors: readonly unknown[]): Tally {
  const failures = unhandledErrors.map((error) => `outside the tests: ${firstLine([error])}`);
  const total: Tally = { passed: 0, failed: unhandledErrors.length, skipped: 0, reasons: new Map(), failures };
  for (const module of modules) {
    let failedHere = 0;
    for (const test of module.children.allTests()) {
      const result = test.result();
      if (result.state === "passed") total.passed++;
      else if (result.state === "skipped") {
        total.skipped++;
        const reason = result.note ?? /\(skipped: (.+?)\)/.exec(test.fullName)?.[1] ?? test.fullName;
        total.reasons.set(reason, (total.reasons.get(reason) ?? 0) + 1);
      } else {
        failedHere++;
        failures.push(`${module.relativeModuleId} > ${test.fullName}: ${firstLine(result.errors ?? [])}`);
      }
    }
    // A hook or the file itself can fail although no test failed.
    const broken = brokenSuites(module, failures);
    total.failed += failedHere + (module.state() === "failed" && failedHere === 0 ? Math.max(1, broken) : broken);
  }
  return total;
}

export function closing({ passed, failed, skipped, reasons, failures }: Tally): string {
  const why = [...reasons].map(([reason, count]) => `skipped ${count}: ${reason}\n`).join("");
  const what = failures.map((failure) => `failed: ${failure}\n`).join("");
  return `${why}${what}${passed} passed, ${failed} failed, ${skipped} skipped\n`;
}

/** The number of suites, including the file itself, whose own hooks failed. Adds them to `failures`. */
function brokenSuites(suite: TestModule | TestSuite, failures: string[]): number {
  const errors = suite.errors();
  const name =
    suite.type === "module" ? suite.relativeModuleId : `${suite.module.relativeModuleId} > ${suite.fullName}`;
  if (errors.length > 0) failures.push(`${name}: ${firstLine(errors)}`);
  let broken = errors.length > 0 ? 1 : 0;
  for (const child of suite.children.suites()) broken += brokenSuites(child, failures);
  return broken;
}

function firstLine(errors: readonly unknown[]): string {
  const [error] = errors;
  const message = (error as { message?: unknown } | undefined)?.message ?? error ?? "it did not end";
  return String(message).split("\n", 1)[0] as string;
}
