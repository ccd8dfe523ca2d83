import { createHash } from "node:crypto";
import type { Browser, BrowserContextOptions, Page } from "playwright-core";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { browserPath, patience, startBrowser, until, whyNoBrowser } from "../../../../tools/testing/browser.ts";
import { openRuns } from "../run-folder.ts";
import { servePage } from "../server.ts";
import { temporaryRun, trainingLine } from "../testing/temporary-run.ts";

const here = { host: "127.0.0.1", port: 0 };
const desk = { viewport: { width: 1200, height: 900 } };
const phone = { viewport: { width: 360, height: 740 }, isMobile: true };

/** What a run with four ranks measures. */
function measured(step: number): object {
  return trainingLine(step, {
    elapsed_seconds: (step + 1) / 10,
    total_bytes: (step + 1) * 1000,
    tokens_per_second: 2000,
    skew_seconds: 0.01,
    "time/data": 0.001,
    "time/forward": 0.02,
    "time/backward": 0.05,
    "time/exposed": 0.025,
    "time/encode": 0.002,
    "time/wire": 0.03,
    "time/decode": 0.001,
    "time/update": 0.003,
    "ranks/compute_seconds": [0.07, 0.08, 0.075, 0.071],
    "ranks/exposed_seconds": [0.03, 0.02, 0.025, 0.029],
    "ranks/resident_bytes": [8e8, 8e8, 8e8, 8e8],
  });
}

const rare = {
  "votes/ties": 0.12,
  "votes/chance_ties": 0.375,
  "update/match": 0.6,
  "update/flip": 0.1,
  "update/ties": 0.3,
  "layers/names": ["tokens.weight", "norm.weight", "head.weight"],
  "layers/match": [0.58, null, 0.7],
  "layers/flip": [0.043, null, 0.2],
  "layers/ties": [0.375, null, 0.1],
  "votes/agreement": 0.6,
  "momentum/drift": 0.7,
  "momentum/agreement": 0.62,
  "momentum/quantiles": [0.5, 2, 5, 7, 40],
};

/** What a line of a run with local steps has besides. */
const ofRound = { "local/round_bytes": 5000, "local/wait_seconds": 0.02, "local/drift": 1.5 };

/** The card with this heading. */
const card = (title: string) => `document.querySelector('[aria-label="${title}"]')`;

describe.skipIf(!browserPath)(`in a headless Chromium${whyNoBrowser}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startBrowser();
  });
  afterAll(() => browser?.close());
  afterEach(() => Promise.all(browser.contexts().map((context) => context.close())));

  /** An empty page, and all errors that it will have. */
  async function newPage(options: BrowserContextOptions = desk): Promise<{ page: Page; errors: string[] }> {
    const page = await browser.newPage({ locale: "en-US", ...options });
    page.setDefaultTimeout(patience);
    const errors: string[] = [];
    page.on("pageerror", ({ message }) => errors.push(message));
    page.on("console", (line) => line.type() === "error" && errors.push(line.text()));
    return { page, errors };
  }

  async function opened(url: string, page: Page): Promise<void> {
    await page.goto(url, { waitUntil: "commit" }); // a page that follows a run never ends loading
    await until(
      page,
      "document.querySelector('.run') && !document.querySelector('.waiting') && document.querySelector('canvas')",
    );
  }

  it("shows what a run has measured, nothing else, and what it writes while one looks", async () => {
    using run = temporaryRun("live");
    run.add({ step: 0, "val/loss": 5 }, trainingLine(0), trainingLine(9));
    await using server = await servePage(
      openRuns([run.folder], () => true),
      here,
    );
    const { page, errors } = await newPage();
    await opened(server.url, page);
    const hidden = (title: string) => page.evaluate<boolean>(`${card(title)}.hidden`);
    const unmeasured = ["Parts of a step", "Ranks", "Agreement by layer", "Vote and standard Lion", "Ties"];
    unmeasured.push("Momentum drift", "Sizes of momenta", "Sample of text");
    expect(await Promise.all(unmeasured.map(hidden))).toEqual(unmeasured.map(() => true));
    expect(await page.textContent(".state")).toBe("running");
    expect(await page.evaluate("document.querySelector('progress').value")).toBe(10);

    expect(await page.textContent(".facts")).not.toContain("best");
    run.add({ step: 30, "val/loss": 4 }, { step: 40, "val/loss": 4.5 });
    await until(page, "document.querySelector('.facts').textContent.includes('best4.0000 after 30 steps')");
    run.add({ step: 45, "val/loss": 4.25, "best/loss": 3.5, "best/step": 45 }); // with an average, for example
    await until(page, "document.querySelector('.facts').textContent.includes('best3.5000 after 45 steps')");

    run.add(measured(49), { step: 50, ...rare }, { step: 50, "sample/prompt": "a", "sample/text": "<b>text</b>" });
    await until(page, "document.querySelector('progress').value === 50");
    await until(page, `!${card("Sample of text")}.hidden`);
    expect(await Promise.all(unmeasured.map(hidden))).toEqual(unmeasured.map(() => false));
    expect(await page.evaluate(`${card("Sample of text")}.querySelector('pre').textContent`)).toBe("<b>text</b>");
    const parts = await page.evaluate<string[]>(
      `[...${card("Parts of a step")}.querySelectorAll('td')].map((cell) => cell.textContent)`,
    );
    // 0.1 s less data, forward, backward and waiting is the rest.
    expect(parts.slice(1)).toEqual([
      "1.00 ms · 1 %",
      "20.0 ms · 20 %",
      "50.0 ms · 50 %",
      "25.0 ms · 25 %",
      "4.00 ms · 4 %",
      "100 ms",
    ]);
    expect(await page.evaluate(`${card("Ranks")}.innerText`)).toContain(
      "Rank 1 is the slowest: its own work takes 10.0 ms more",
    );
    const rowsByLayer = `[...${card("Agreement by layer")}.querySelectorAll('tr')]`;
    const byLayer = `${rowsByLayer}.map((row) => [...row.children].map((cell) => cell.textContent))`;
    expect(await page.evaluate(byLayer)).toEqual([
      ["layer", "match", "flip", "ties"],
      ["the model", "60.0 %", "10.0 %", "30.0 %"],
      ["tokens.weight", "58.0 %", "4.30 %", "37.5 %"],
      ["head.weight", "70.0 %", "20.0 %", "10.0 %"], // norm.weight is not voted on
    ]);
    const chance = `${card("Agreement by layer")}.querySelector('svg line').getAttribute('x1')`;
    expect(await page.evaluate(chance)).toBe("62.5%");
    expect(errors).toEqual([]);
  });

  it("shows other runs where their page listens at the address of an earlier one", async () => {
    using first = temporaryRun("first");
    using second = temporaryRun("second");
    first.add(trainingLine(0), trainingLine(9));
    second.add(trainingLine(0), trainingLine(49));
    const { page } = await newPage();
    const running = () => true; // so that the browser tries again when the page ends
    const server = await servePage(openRuns([first.folder], running), here);
    const port = Number(new URL(server.url).port);
    await opened(server.url, page);
    await server[Symbol.asyncDispose]();
    await using other = await servePage(openRuns([first.folder, second.folder], running), { ...here, port });
    expect(other.url).toBe(server.url);
    // As the cards say it: a page that loads again has no window to ask.
    const shown = (card: RegExp) => page.locator(".run").filter({ hasText: card }).waitFor();
    await shown(/^second.*50 of 100/);
    await shown(/^first.*10 of 100/);
    await other[Symbol.asyncDispose]();
    await using last = await servePage(openRuns([second.folder], running), { ...here, port });
    expect(last.url).toBe(server.url);
    await page
      .locator(".run")
      .filter({ hasText: /^first/ })
      .waitFor({ state: "detached" });
    await shown(/^second.*50 of 100/);
    expect(await page.locator(".run").count()).toBe(1);
  });

  it("shows the rounds of local steps, beside a run without them", async () => {
    using local = temporaryRun("local", { steps: 20, local: { syncEvery: 10 } });
    using other = temporaryRun("other", { steps: 20 });
    local.add(trainingLine(9, ofRound), trainingLine(19, { ...ofRound, "local/drift": 2.5 }));
    other.add(trainingLine(9), trainingLine(19));
    await using server = await servePage(openRuns([other.folder, local.folder]), here);
    const { page, errors } = await newPage();
    await opened(server.url, page);
    await until(page, `!${card("Drift of a round")}.hidden`);
    const rows = (title: string) =>
      page.evaluate(
        `[...${card(title)}.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent))`,
      );
    for (const [title, first, last] of [
      ["Bytes of a round", "5.00 kB", "5.00 kB"],
      ["Waiting for a round", "20.0 ms", "20.0 ms"],
      ["Drift of a round", "1.50", "2.50"],
    ] as const) {
      await page.evaluate(`${card(title)}.querySelector('summary').click()`);
      expect(await rows(title), title).toEqual([
        ["steps", "local"],
        ["10", first],
        ["20", last],
      ]);
    }
    expect(errors).toEqual([]);
  });

  it("compares runs by steps, time and bytes, and names the keys in which they differ", async () => {
    using one = temporaryRun("one", { steps: 20, optimizer: { name: "lion", lr: 1 } });
    using other = temporaryRun("other", { steps: 20, optimizer: { name: "lion-cub", lr: 1 } });
    one.add(measured(0), measured(19));
    other.add(measured(0), '{"step":9,"train');
    await using server = await servePage(openRuns([one.folder, other.folder]), here);
    const { page, errors } = await newPage();
    await opened(server.url, page);
    await until(page, `${card("Loss")}.querySelectorAll(".legend button").length === 2`); // the charts follow the cards
    const states = "[...document.querySelectorAll('.state')].map((state) => state.textContent)";
    expect(await page.evaluate(states)).toEqual(["ended", "failed after 1 step"]);
    expect(await page.evaluate("document.querySelector('.problem').textContent")).toBe(
      "metrics.jsonl: the last line is cut short, and is left out",
    );
    expect(await page.evaluate("document.querySelector('.recipe tbody').innerText")).toBe(
      "optimizer.name\tlion\tlion-cub",
    );

    await page.evaluate(`${card("Loss")}.querySelector('summary').click()`);
    const table = `[...${card("Loss")}.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent))`;
    expect(await page.evaluate(table)).toEqual([
      ["steps", "one", "other"],
      ["1", "4.00", "4.00"],
      ["20", "3.81", ""],
    ]);
    await page.evaluate("document.querySelector('[value=bytes]').click()");
    const places = async () => (await page.evaluate<string[][]>(table)).map(([first]) => first);
    expect(await places()).toEqual(["bytes", "1.00 kB", "20.0 kB"]);
    await page.evaluate("document.querySelector('[value=seconds]').click()");
    expect(await places()).toEqual(["seconds", "100 ms", "2.00 s"]);
    expect(errors).toEqual([]);
  });

  it("is used with the keyboard alone, and everything that takes the focus has a name", async () => {
    using run = temporaryRun("keys");
    run.add(...Array.from({ length: 50 }, (_, step) => measured(step)), { step: 50, ...rare });
    await using server = await servePage(openRuns([run.folder]), here);
    const { page } = await newPage();
    await opened(server.url, page);
    const nameless = (await accessible(page)).filter(
      ({ focusable, name, role }) => focusable && name === "" && role !== "generic",
    );
    expect(nameless).toEqual([]);
    const focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent ?? ''";
    const order: string[] = [];
    for (let i = 0; i < 5; i++) {
      await page.keyboard.press("Tab");
      order.push(
        (await page.evaluate<string>(`document.activeElement.value ?? ${focused}`)) ||
          (await page.evaluate<string>(focused)),
      );
    }
    expect(order.slice(0, 2)).toEqual(["Skip to the charts", "steps"]);
    expect(order[2]).toMatch(/^training /); // a curve that can be hidden
    expect(order[3]).toMatch(/^Loss by steps, a line chart\. Last values: training 3\.51\./);

    await page.evaluate(`${card("Loss")}.querySelector('.plot').focus()`);
    const reading = "document.getElementById('reading').textContent";
    await page.keyboard.press("Home");
    expect(await page.evaluate(reading)).toBe("1 steps: training 4.00");
    await page.keyboard.press("ArrowRight");
    expect(await page.evaluate(reading)).toBe("2 steps: training 3.99");
    await page.keyboard.press("End");
    expect(await page.evaluate(reading)).toBe("50 steps: training 3.51");
    expect(await page.evaluate(`getComputedStyle(${card("Loss")}.querySelector('.plot')).outlineStyle`)).toBe("solid");
  });

  it.each(["light", "dark"] as const)("has the contrast of WCAG AA in %s mode, and fits a phone", async (scheme) => {
    using run = temporaryRun("contrast-of-a-run-with-a-name-that-is-long");
    run.add(measured(0), { step: 1, ...rare }, { step: 1, "sample/prompt": "a", "sample/text": "x".repeat(200) });
    await using server = await servePage(openRuns([run.folder, run.folder]), here);
    const { page } = await newPage({ ...phone, colorScheme: scheme, reducedMotion: "reduce" });
    await opened(server.url, page);
    expect(await page.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(await page.evaluate("getComputedStyle(document.querySelector('.state'), '::before').animationName")).toBe(
      "none",
    );
    expect(await page.evaluate(`(${lowContrasts})()`)).toEqual([]);
    const small =
      "[...document.querySelectorAll('button, input, select, summary')].filter((each) => each.offsetParent && each.getBoundingClientRect().height < 17).length";
    expect(await page.evaluate(small)).toBe(0);
  });

  it("fails what waits for it, and what is asked of it later, at once where it ends, and says why", async () => {
    const own = await startBrowser();
    const page = await own.newPage();
    const devTools = await own.newBrowserCDPSession();
    const waiting = page.evaluate("new Promise(() => {})");
    devTools.send("Browser.crash").catch(() => {});
    await expect(waiting).rejects.toThrow(/has been closed\nBrowser logs:/);
    await expect(own.newPage()).rejects.toThrow("has been closed");
  });

  it("shows the same in every language of the browser, also where that is no name of one", async () => {
    using run = temporaryRun("languages", { steps: 3000 });
    run.add(...Array.from({ length: 20 }, (_, i) => measured(100 * i)), { step: 2000, ...rare });
    await using server = await servePage(openRuns([run.folder]), here);
    /** All texts and numbers, and the pixels of the first chart, in which its axes have theirs. */
    const seen = async (page: Page) => {
      const texts = "[...document.querySelectorAll('.run .facts, .u-legend, table')].map((each) => each.textContent)";
      const pixels = `${card("Loss")}.querySelector('canvas').toDataURL()`;
      const all = (await page.evaluate<string[]>(texts)).join("\n").replace(/\d+ s ago/, "");
      return {
        all,
        pixels: createHash("sha256")
          .update(await page.evaluate<string>(pixels))
          .digest("hex"),
      };
    };
    let english: object | undefined;
    for (const language of ["en-US", "", "en-US@posix", "de-DE", "ar", "zh-Hant", "xx-invalid"]) {
      const isName = /^[a-z]{2}(-[A-Z]\w+)?$/.test(language);
      const { page, errors } = await newPage(isName ? { ...desk, locale: language } : desk);
      await page.addInitScript(
        `Object.defineProperty(Navigator.prototype, "language", { get: () => ${JSON.stringify(language)} })`,
      );
      await opened(server.url, page);
      await page.waitForTimeout(1000); // all has been drawn
      english ??= await seen(page);
      expect(JSON.stringify(english)).toContain("1,901 of 3,000");
      await expect.poll(() => seen(page), { message: language, timeout: patience }).toEqual(english);
      expect(errors, language).toEqual([]);
      await page.context().close();
    }
  });

  it("shows itself in a browser that was started under LANG=C.UTF-8", async () => {
    using run = temporaryRun("posix");
    run.add(measured(0), measured(9));
    await using server = await servePage(openRuns([run.folder]), here);
    const posix = await startBrowser({ environment: { LANG: "C.UTF-8", LC_ALL: "C.UTF-8", LANGUAGE: "" } });
    try {
      const page = await posix.newPage(desk);
      page.setDefaultTimeout(patience);
      await opened(server.url, page);
    } finally {
      await posix.close();
    }
  });

  it("takes the token from its address, which then has none, and without it says what is missing", async () => {
    using run = temporaryRun("with-token");
    run.add(measured(0));
    await using server = await servePage(openRuns([run.folder]), { host: "0.0.0.0", port: 0 });
    const url = new URL(server.url);
    url.hostname = "127.0.0.1";
    const token = url.hash;
    url.hash = "";
    const { page } = await newPage();
    await page.goto(url.href);
    await until(page, "document.getElementById('connection')?.textContent.startsWith('this page needs its token')");
    await page.goto("about:blank");
    url.hash = token;
    await opened(url.href, page);
    expect(await page.evaluate("location.hash + document.cookie")).toBe("");
    await opened(`http://${url.host}/`, page); // the cookie is enough now
  });
});

/** Role, name and value of everything that a screen reader sees. */
async function accessible(page: Page): Promise<{ role: string; name: string; focusable: boolean }[]> {
  const devTools = await page.context().newCDPSession(page);
  const { nodes } = await devTools.send("Accessibility.getFullAXTree");
  return nodes
    .filter(({ ignored }) => !ignored)
    .map(({ role, name, properties = [] }) => ({
      role: String(role?.value ?? ""),
      name: String(name?.value ?? ""),
      focusable: properties.some((property) => property.name === "focusable" && property.value.value === true),
    }));
}

/** Texts whose contrast with what is behind them is below 4.5 : 1, by WCAG 2's formula. */
const lowContrasts = `() => {
  const channels = (colour) => colour.match(/[\\d.]+/g).map(Number);
  const linear = (value) => (value /= 255) <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  const luminance = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const behind = (of) => {
    for (let at = of; at; at = at.parentElement) {
      const colour = channels(getComputedStyle(at).backgroundColor);
      if (colour[3] !== 0) return colour;
    }
    return channels(getComputedStyle(document.documentElement).backgroundColor);
  };
  const low = [];
  for (const element of document.querySelectorAll("body *")) {
    const text = [...element.childNodes].filter((node) => node.nodeType === 3).map((node) => node.data.trim()).join("");
    if (text === "" || !element.checkVisibility()) continue;
    const [a, b] = [channels(getComputedStyle(element).color), behind(element)].map(luminance).sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) low.push(text + ": " + ratio.toFixed(2));
  }
  return low;
}`;
