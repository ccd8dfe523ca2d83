import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openRuns } from "../run-folder.ts";
import { servePage } from "../server.ts";
import { Browser, browserPath, whyNoBrowser } from "../testing/browser.ts";
import { temporaryRun, trainingLine } from "../testing/temporary-run.ts";

const here = { host: "127.0.0.1", port: 0 };
const desk = { width: 1200, height: 900 };
const phone = { width: 360, height: 740 };

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
  "votes/agreement": 0.6,
  "momentum/drift": 0.7,
  "momentum/agreement": 0.62,
  "momentum/quantiles": [0.5, 2, 5, 7, 40],
};

/** The card with this heading. */
const card = (title: string) => `document.querySelector('[aria-label="${title}"]')`;

describe.skipIf(!browserPath)(`in a headless Chromium${whyNoBrowser}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await Browser.start();
  });
  afterAll(async () => {
    await browser?.[Symbol.asyncDispose]();
  });

  async function opened(url: string): Promise<void> {
    await browser.open(url);
    await browser.until(
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
    await browser.view(desk);
    await opened(server.url);
    const hidden = (title: string) => browser.evaluate<boolean>(`${card(title)}.hidden`);
    const unmeasured = ["Parts of a step", "Ranks", "Ties", "Momentum drift", "Sizes of momenta", "Sample of text"];
    expect(await Promise.all(unmeasured.map(hidden))).toEqual(unmeasured.map(() => true));
    expect(await browser.evaluate("document.querySelector('.state').textContent")).toBe("running");
    expect(await browser.evaluate("document.querySelector('progress').value")).toBe(10);

    run.add(measured(49), { step: 50, ...rare }, { step: 50, "sample/prompt": "a", "sample/text": "<b>text</b>" });
    await browser.until("document.querySelector('progress').value === 50");
    await browser.until(`!${card("Sample of text")}.hidden`);
    expect(await Promise.all(unmeasured.map(hidden))).toEqual(unmeasured.map(() => false));
    expect(await browser.evaluate(`${card("Sample of text")}.querySelector('pre').textContent`)).toBe("<b>text</b>");
    const parts = await browser.evaluate<string[]>(
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
    expect(await browser.evaluate(`${card("Ranks")}.innerText`)).toContain(
      "Rank 1 is the slowest: its own work takes 10.0 ms more",
    );
    expect(browser.errors).toEqual([]);
  });

  it("compares runs by steps, time and bytes, and names the keys in which they differ", async () => {
    using one = temporaryRun("one", { steps: 20, optimizer: { name: "lion", lr: 1 } });
    using other = temporaryRun("other", { steps: 20, optimizer: { name: "lion-cub", lr: 1 } });
    one.add(measured(0), measured(19));
    other.add(measured(0), '{"step":9,"train');
    await using server = await servePage(openRuns([one.folder, other.folder]), here);
    await opened(server.url);
    await browser.until(`${card("Loss")}.querySelectorAll(".legend button").length === 2`); // the charts follow the cards
    const states = "[...document.querySelectorAll('.state')].map((state) => state.textContent)";
    expect(await browser.evaluate(states)).toEqual(["ended", "failed after 1 step"]);
    expect(await browser.evaluate("document.querySelector('.problem').textContent")).toBe(
      "metrics.jsonl: the last line is cut short, and is left out",
    );
    expect(await browser.evaluate("document.querySelector('.recipe tbody').innerText")).toBe(
      "optimizer.name\tlion\tlion-cub",
    );

    await browser.evaluate(`${card("Loss")}.querySelector('summary').click()`);
    const table = `[...${card("Loss")}.querySelectorAll('tr')].map((row) => [...row.children].map((cell) => cell.textContent))`;
    expect(await browser.evaluate(table)).toEqual([
      ["steps", "one", "other"],
      ["1", "4.00", "4.00"],
      ["20", "3.81", ""],
    ]);
    await browser.evaluate("document.querySelector('[value=bytes]').click()");
    const places = async () => (await browser.evaluate<string[][]>(table)).map(([first]) => first);
    expect(await places()).toEqual(["bytes", "1.00 kB", "20.0 kB"]);
    await browser.evaluate("document.querySelector('[value=seconds]').click()");
    expect(await places()).toEqual(["seconds", "100 ms", "2.00 s"]);
    expect(browser.errors).toEqual([]);
  });

  it("is used with the keyboard alone, and everything that takes the focus has a name", async () => {
    using run = temporaryRun("keys");
    run.add(...Array.from({ length: 50 }, (_, step) => measured(step)), { step: 50, ...rare });
    await using server = await servePage(openRuns([run.folder]), here);
    await opened(server.url);
    const nameless = (await browser.accessible()).filter(
      ({ focusable, name, role }) => focusable && name === "" && role !== "generic",
    );
    expect(nameless).toEqual([]);
    const focused = "document.activeElement.getAttribute('aria-label') ?? document.activeElement.textContent ?? ''";
    const order: string[] = [];
    for (let i = 0; i < 5; i++) {
      await browser.press("Tab");
      order.push(
        (await browser.evaluate<string>(`document.activeElement.value ?? ${focused}`)) ||
          (await browser.evaluate<string>(focused)),
      );
    }
    expect(order.slice(0, 2)).toEqual(["Skip to the charts", "steps"]);
    expect(order[2]).toMatch(/^training /); // a curve that can be hidden
    expect(order[3]).toMatch(/^Loss by steps, a line chart\. Last values: training 3\.51\./);

    await browser.evaluate(`${card("Loss")}.querySelector('.plot').focus()`);
    const reading = "document.getElementById('reading').textContent";
    await browser.press("Home");
    expect(await browser.evaluate(reading)).toBe("1 steps: training 4.00");
    await browser.press("ArrowRight");
    expect(await browser.evaluate(reading)).toBe("2 steps: training 3.99");
    await browser.press("End");
    expect(await browser.evaluate(reading)).toBe("50 steps: training 3.51");
    expect(await browser.evaluate(`getComputedStyle(${card("Loss")}.querySelector('.plot')).outlineStyle`)).toBe(
      "solid",
    );
  });

  it.each(["light", "dark"] as const)("has the contrast of WCAG AA in %s mode, and fits a phone", async (scheme) => {
    using run = temporaryRun("contrast-of-a-run-with-a-name-that-is-long");
    run.add(measured(0), { step: 1, ...rare }, { step: 1, "sample/prompt": "a", "sample/text": "x".repeat(200) });
    await using server = await servePage(openRuns([run.folder, run.folder]), here);
    await browser.view({ ...phone, scheme, reducedMotion: true });
    await opened(server.url);
    expect(await browser.evaluate("document.documentElement.scrollWidth")).toBe(360);
    expect(await browser.evaluate("getComputedStyle(document.querySelector('.state'), '::before').animationName")).toBe(
      "none",
    );
    expect(await browser.evaluate(`(${lowContrasts})()`)).toEqual([]);
    const small =
      "[...document.querySelectorAll('button, input, select, summary')].filter((each) => each.offsetParent && each.getBoundingClientRect().height < 17).length";
    expect(await browser.evaluate(small)).toBe(0);
  });

  it("takes the token from its address, which then has none, and without it says what is missing", async () => {
    using run = temporaryRun("with-token");
    run.add(measured(0));
    await using server = await servePage(openRuns([run.folder]), { host: "0.0.0.0", port: 0 });
    const url = new URL(server.url);
    url.hostname = "127.0.0.1";
    const token = url.hash;
    url.hash = "";
    await browser.open(url.href);
    await browser.until("document.getElementById('connection')?.textContent.startsWith('this page needs its token')");
    await browser.open("about:blank");
    url.hash = token;
    await opened(url.href);
    expect(await browser.evaluate("location.hash + document.cookie")).toBe("");
    await opened(`http://${url.host}/`); // the cookie is enough now
  });
});

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
