/** A headless Chromium for tests, driven by the DevTools protocol: opens pages, presses keys, evaluates, and takes pictures. */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";

const names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable"];
const folders = (process.env["PATH"] ?? "").split(delimiter).filter(Boolean);

/** The browser that tests use; undefined where there is none. */
export const browserPath =
  process.env["TERSE_BROWSER"] || globSync(folders.flatMap((path) => names.map((name) => join(path, name))))[0];

/** Why tests in a browser are skipped. */
export const whyNoBrowser = browserPath
  ? ""
  : ` (skipped: ${process.env["TERSE_BROWSER_MISSING"] ?? "no chromium or google-chrome on the PATH, and TERSE_BROWSER names none; ./terse test brings one"})`;

interface View {
  readonly width: number;
  readonly height: number;
  readonly scheme?: "light" | "dark";
  readonly reducedMotion?: boolean;
}

type Reply = Record<string, unknown>;

export class Browser implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #commands: Writable;
  readonly #profile: string;
  readonly #waiting = new Map<number, PromiseWithResolvers<Reply>>();
  #last = 0;
  #session: string | undefined;
  /** Errors of the page, and what its console says of errors. */
  readonly errors: string[] = [];

  private constructor(child: ChildProcess, profile: string) {
    this.#child = child;
    this.#profile = profile;
    const [, , , commands, answers] = child.stdio as [null, null, Readable, Writable, Readable];
    this.#commands = commands.on("error", () => {}); // it is gone, which "close" tells
    let rest = "";
    answers.setEncoding("utf8").on("data", (more: string) => {
      const messages = (rest + more).split("\0");
      rest = messages.pop()!;
      for (const message of messages) this.#hear(JSON.parse(message));
    });
    let said = "";
    child.stderr!.setEncoding("utf8").on("data", (more: string) => {
      said = (said + more).slice(-1000);
    });
    const fail = (how: string) => {
      for (const { reject } of this.#waiting.values()) reject(new Error(`${browserPath} ${how}: ${said}`));
    };
    child.on("error", ({ message }) => fail(message));
    child.on("close", () => fail("has ended"));
  }

  static async start(): Promise<Browser> {
    const profile = mkdtempSync(join(tmpdir(), "terse-browser-"));
    const quiet =
      "--no-first-run --disable-background-networking --disable-component-update --disable-sync --hide-scrollbars --lang=en-US --accept-lang=en-US";
    const flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", ...quiet.split(" ")];
    const child = spawn(browserPath!, [...flags, `--user-data-dir=${profile}`, "--remote-debugging-pipe"], {
      env: { ...process.env, LC_ALL: "en_US.UTF-8", LANGUAGE: "en_US" }, // a browser in C.UTF-8 has a language that no script knows
      detached: true, // a group of its own: a browser is many processes
      stdio: ["ignore", "ignore", "pipe", "pipe", "pipe"], // it ends when the pipes do
    });
    const browser = new Browser(child, profile);
    const { targetId } = await browser.#ask("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await browser.#ask("Target.attachToTarget", { targetId, flatten: true });
    browser.#session = sessionId as string;
    for (const part of ["Page", "Runtime", "Log"]) await browser.#ask(`${part}.enable`);
    return browser;
  }

  async view({ width, height, scheme = "light", reducedMotion = false }: View): Promise<void> {
    await this.#ask("Emulation.setDeviceMetricsOverride", { width, height, deviceScaleFactor: 1, mobile: width < 600 });
    const features = [
      { name: "prefers-color-scheme", value: scheme },
      { name: "prefers-reduced-motion", value: reducedMotion ? "reduce" : "no-preference" },
    ];
    await this.#ask("Emulation.setEmulatedMedia", { features });
  }

  async open(url: string): Promise<void> {
    await this.#ask("Page.navigate", { url });
  }

  /** The value of an expression in the page, which may be a promise. */
  async evaluate<T>(expression: string): Promise<T> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = (await this.#ask("Runtime.evaluate", options)) as {
      result: { value: T };
      exceptionDetails?: { exception?: { description?: string } };
    };
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? "the expression failed");
    return result.value;
  }

  /** Waits until an expression is true in the page. */
  async until(expression: string, seconds = 30): Promise<void> {
    const end = performance.now() + 1000 * seconds;
    while (!(await this.evaluate<boolean>(`Boolean(${expression})`))) {
      if (performance.now() > end) throw new Error(`not true after ${seconds} s: ${expression}`);
      await sleep(50);
    }
  }

  async press(key: string, { shift = false } = {}): Promise<void> {
    const codes: Record<string, number> = {
      Tab: 9,
      Enter: 13,
      Escape: 27,
      End: 35,
      Home: 36,
      ArrowLeft: 37,
      ArrowRight: 39,
      " ": 32,
    };
    const text = key.length === 1 ? key : key === "Enter" ? "\r" : undefined;
    const event = { key, text, windowsVirtualKeyCode: codes[key], modifiers: shift ? 8 : 0 };
    await this.#ask("Input.dispatchKeyEvent", { type: "keyDown", ...event });
    await this.#ask("Input.dispatchKeyEvent", { type: "keyUp", ...event });
  }

  /** Role, name and value of everything that a screen reader sees. */
  async accessible(): Promise<{ role: string; name: string; focusable: boolean }[]> {
    type Node = { ignored: boolean; role?: { value: string }; name?: { value: string }; properties?: Property[] };
    type Property = { name: string; value: { value: unknown } };
    const { nodes } = (await this.#ask("Accessibility.getFullAXTree")) as { nodes: Node[] };
    return nodes
      .filter(({ ignored }) => !ignored)
      .map(({ role, name, properties = [] }) => ({
        role: role?.value ?? "",
        name: name?.value ?? "",
        focusable: properties.some((property) => property.name === "focusable" && property.value.value === true),
      }));
  }

  /** A PNG of the whole page, or of what fits in the view. */
  async picture({ whole = true } = {}): Promise<Buffer> {
    const { data } = await this.#ask("Page.captureScreenshot", { format: "png", captureBeyondViewport: whole });
    return Buffer.from(data as string, "base64");
  }

  async #ask(method: string, params: object = {}): Promise<Reply> {
    const id = ++this.#last;
    const answer = Promise.withResolvers<Reply>();
    this.#waiting.set(id, answer);
    this.#commands.write(`${JSON.stringify({ id, method, params, sessionId: this.#session })}\0`);
    return answer.promise;
  }

  #hear(message: { id?: number; result?: Reply; error?: { message: string }; method?: string; params?: Reply }): void {
    const { id, result, error, method, params } = message;
    if (id !== undefined) {
      const waiting = this.#waiting.get(id);
      this.#waiting.delete(id);
      if (error) waiting?.reject(new Error(error.message));
      else waiting?.resolve(result ?? {});
    } else if (method === "Runtime.exceptionThrown") this.errors.push(JSON.stringify(params!["exceptionDetails"]));
    else if (method === "Log.entryAdded" && (params!["entry"] as Reply)["level"] === "error")
      this.errors.push(String((params!["entry"] as Reply)["text"]));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.pid !== undefined && this.#child.exitCode === null && this.#child.signalCode === null) {
      const gone = once(this.#child, "exit");
      process.kill(-this.#child.pid, "SIGKILL");
      await gone;
    }
    rmSync(this.#profile, { recursive: true, force: true, maxRetries: 10 });
  }
}
