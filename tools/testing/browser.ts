/**
 * The headless Chromium of tests, driven by Playwright. If the browser ends, what waits for it fails at once with its
 * last words.
 */
import { setTimeout as sleep } from "node:timers/promises";
import { type Browser, chromium, type Page } from "playwright-core";
import { browserRemedy, findBrowser } from "../dependencies/browser.ts";

/** The browser's program; undefined where there is none. */
export const browserPath: string | undefined = findBrowser();

/** Why tests in a browser are skipped. */
export const whyNoBrowser: string = browserPath
  ? ""
  : ` (skipped: ${process.env["TERSE_BROWSER_MISSING"] ?? `no Chromium was found; ./terse test brings one, or ${browserRemedy}`})`;

/**
 * Milliseconds until an operation on a page fails: longer than any takes on a busy machine, shorter than a test's
 * limit.
 */
export const patience = 60_000;

/** `environment` is added to this process's own. */
export function startBrowser({ program = browserPath!, environment = {} } = {}): Promise<Browser> {
  return chromium.launch({
    executablePath: program,
    args: ["--disable-gpu", "--disable-dev-shm-usage"],
    env: { ...(process.env as Record<string, string>), ...environment },
    timeout: patience,
  });
}

/**
 * Waits until an expression is true in the page. Playwright's own waits evaluate in the page, which its security policy
 * forbids.
 */
export async function until(page: Page, expression: string): Promise<void> {
  const end = performance.now() + patience;
  while (!(await page.evaluate<boolean>(`Boolean(${expression})`))) {
    if (performance.now() > end) throw new Error(`not true after ${patience / 1000} s: ${expression}`);
    await sleep(50);
  }
}
