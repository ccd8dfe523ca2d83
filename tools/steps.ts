import { closeSync, mkdirSync, openSync, rmSync, writeSync } from "node:fs";
import { dirname, join } from "node:path";
import { stripVTControlCharacters, styleText } from "node:util";
import { columnsOf, fitted, hasStyles, isTerminal } from "../packages/options/src/terminal-line.ts";
import { onEnd } from "./on-end.ts";
import { remedyFor, StepFailed } from "./remedy.ts";
import { CommandFailed, type RunOptions, run } from "./run.ts";

/** What a step can do: run commands whose output goes to its log, and change its line on the terminal. */
export interface Progress {
  run(command: string, args: readonly string[], options?: RunOptions): Promise<string>;
  say(text: string): void;
}

export interface StepsOptions {
  stream?: NodeJS.WriteStream | { isTTY?: boolean; columns?: number; write(text: string): unknown };
  folder: string; // where the steps write, if not into the checkout; error messages name it
  checkout: string;
}

const frames = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/** A step has failed, and its error has been printed. */
export class SetUpFailed extends Error {
  override name = "SetUpFailed";
}

/**
 * Shows the steps of a set-up on standard error: one line for each, with its time. Several may run at once. A terminal
 * also shows a spinner and the tool's last line of output while a step runs. A tool's output goes to a log file. If the
 * step fails, the file is kept and its end is printed.
 */
export class Steps {
  readonly #stream: NonNullable<StepsOptions["stream"]>;
  readonly #lines: Lines;
  readonly #folder: string;
  readonly #checkout: string;

  constructor(options: StepsOptions) {
    this.#stream = options.stream ?? process.stderr;
    this.#lines = new Lines(this.#stream);
    this.#folder = options.folder;
    this.#checkout = options.checkout;
  }

  /** Runs one step; `about` is its cost ("540 MB to fetch"). Prints the reason and throws `SetUpFailed` if it fails. */
  async run<T>(name: string, about: string, work: (progress: Progress) => Promise<T>): Promise<T> {
    const outcome = await this.#attempt(name, about, work, false);
    if ("value" in outcome) return outcome.value;
    throw new SetUpFailed(outcome.reason);
  }

  /** Runs one optional step: resolves to the reason if it fails. */
  async try<T>(
    name: string,
    about: string,
    work: (progress: Progress) => Promise<T>,
  ): Promise<{ value: T } | { reason: string }> {
    return this.#attempt(name, about, work, true);
  }

  /** Runs `look` without a line of its own; prints a `StepFailed` as a failed step and throws `SetUpFailed`. */
  async check<T>(name: string, look: () => T | Promise<T>): Promise<T> {
    try {
      return await look();
    } catch (error) {
      if (!(error instanceof StepFailed)) throw error;
      this.#lines.print(`${this.#paint("red", "✗")} ${name}\n  ${error.message}\n`);
      throw new SetUpFailed(error.message);
    }
  }

  async #attempt<T>(
    name: string,
    about: string,
    work: (progress: Progress) => Promise<T>,
    optional: boolean,
  ): Promise<{ value: T } | { reason: string }> {
    const log = new Log(this.#folder, name);
    const line = this.#lines.begin(name, about);
    const say = (text: string) => {
      if (text !== "") line.words = text;
    };
    try {
      const value = await work({
        say,
        run: (command, args, options = {}) => {
          log.write(`$ ${[command, ...args].join(" ")}\n`);
          return run(command, args, {
            ...options,
            onOutput: (text) => {
              log.write(text);
              say(lastLine(text));
              options.onOutput?.(text);
            },
          });
        },
      });
      this.#lines.end(line, this.#paint("green", "✓"));
      log.remove();
      return { value };
    } catch (error) {
      this.#lines.end(line, optional ? this.#paint("yellow", "–") : this.#paint("red", "✗"));
      return { reason: this.#explain(error, log) };
    }
  }

  #explain(error: unknown, log: Log): string {
    if (error instanceof StepFailed) {
      log.remove();
      this.#lines.print(`  ${error.message}\n`);
      return error.message;
    }
    const failed = error as NodeJS.ErrnoException;
    const said = error instanceof CommandFailed ? error.output.trim() : undefined;
    const output = said || (error instanceof CommandFailed || failed.code ? failed.message : String(failed.stack));
    const kept = log.write(`\n${failed.message}\n`);
    log.close();
    for (const text of lastLines(output, 8)) this.#stream.write(`${this.#paint("dim", `  │ ${text}`)}\n`);
    const cwd = error instanceof CommandFailed ? error.cwd : undefined;
    const remedy = remedyFor(output, { toolchain: this.#folder, checkout: this.#checkout, cwd });
    if (remedy !== undefined) this.#stream.write(`  ${remedy}\n`);
    if (error instanceof CommandFailed && error.hint) this.#stream.write(`  ${error.hint}\n`);
    if (kept) this.#stream.write(`  The whole output: ${log.path}\n`);
    return remedy ?? (error as Error).message;
  }

  #paint(style: "green" | "red" | "yellow" | "dim", text: string): string {
    return paint(this.#stream, style, text);
  }
}

/** What a step shows while it runs. */
interface Line {
  readonly name: string;
  readonly start: number; // milliseconds
  words: string;
}

/**
 * The lines of steps. A terminal shows the one that has run longest, rewritten in place, and how many others run beside
 * it. Elsewhere each is printed at its start and at its end.
 */
class Lines {
  readonly #stream: NonNullable<StepsOptions["stream"]>;
  readonly #running: Line[] = [];
  #frame = 0;
  #timer: NodeJS.Timeout | undefined;
  #cancel = () => {};

  constructor(stream: NonNullable<StepsOptions["stream"]>) {
    this.#stream = stream;
  }

  begin(name: string, about: string): Line {
    const line = { name, start: Date.now(), words: about };
    this.#running.push(line);
    if (!isTerminal(this.#stream)) this.#stream.write(`… ${name}${about === "" ? "" : `: ${about}`}\n`);
    else if (this.#running.length === 1) {
      this.#stream.write("\x1b[?25l");
      this.#cancel = onEnd(() => this.#stream.write("\r\x1b[K\x1b[?25h"));
      this.#draw();
      this.#timer = setInterval(() => this.#draw(), 100);
    }
    return line;
  }

  end(line: Line, mark: string): void {
    this.#running.splice(this.#running.indexOf(line), 1);
    const time = paint(this.#stream, "dim", `· ${seconds(Date.now() - line.start)}`);
    this.print(`${mark} ${line.name} ${time}\n`);
    if (this.#running.length > 0) return;
    clearInterval(this.#timer);
    if (isTerminal(this.#stream)) this.#stream.write("\x1b[?25h");
    this.#cancel();
  }

  /** Prints whole lines, in place of the one that is shown. */
  print(lines: string): void {
    this.#stream.write(isTerminal(this.#stream) ? `\r\x1b[K${lines}` : lines);
  }

  #draw(): void {
    const [{ name, start, words }, ...others] = this.#running as [Line, ...Line[]];
    const frame = frames[this.#frame++ % frames.length];
    const beside = others.length > 0 ? `, and ${others.length} more` : "";
    const time = `${Math.floor((Date.now() - start) / 1000)} s${beside}`;
    const room = columnsOf(this.#stream) - 3; // a line that fills the last column may wrap
    const shown = fitted(name, room);
    const rest = fitted(` ${time}  ${words}`, room - shown.length);
    this.#stream.write(
      `\r\x1b[K${paint(this.#stream, "cyan", String(frame))} ${shown}${paint(this.#stream, "dim", rest)}`,
    );
  }
}

/** The log of one step: created by the first write, removed if the step succeeds. */
class Log {
  readonly path: string;
  #file: number | undefined;
  #cancel = () => {};

  constructor(folder: string, step: string) {
    this.path = join(folder, "logs", `${step.replaceAll(/[^\w.-]+/g, "-")}-${process.pid}.log`);
  }

  /** False if the log cannot be written (full disk, no permission): the step itself will fail with the reason. */
  write(text: string): boolean {
    try {
      if (this.#file === undefined) {
        mkdirSync(dirname(this.path), { recursive: true });
        this.#file = openSync(this.path, "w");
        this.#cancel = onEnd(() => this.remove()); // an interrupted step needs no log
      }
      writeSync(this.#file, text);
      return true;
    } catch {
      return false;
    }
  }

  remove(): void {
    this.close();
    rmSync(this.path, { force: true });
  }

  close(): void {
    if (this.#file === undefined) return;
    closeSync(this.#file);
    this.#file = undefined;
    this.#cancel();
  }
}

/** Colours on a terminal, unless NO_COLOR is set. */
export function paint(
  stream: NonNullable<StepsOptions["stream"]>,
  style: Parameters<typeof styleText>[0],
  text: string,
): string {
  return isTerminal(stream) && hasStyles() ? styleText(style, text, { validateStream: false }) : text;
}

/** 850 ms → "0.9 s", 75000 → "1 min 15 s". */
export function seconds(milliseconds: number): string {
  if (milliseconds < 9950) return `${(milliseconds / 1000).toFixed(1)} s`;
  const whole = Math.round(milliseconds / 1000);
  return whole < 60 ? `${whole} s` : `${Math.floor(whole / 60)} min ${whole % 60} s`;
}

function lastLine(text: string): string {
  return lastLines(text, 1)[0] ?? "";
}

function lastLines(text: string, count: number): string[] {
  const lines = stripVTControlCharacters(text)
    .split(/[\r\n]+/)
    .map((line) => line.trimEnd());
  return lines.filter((line) => line !== "").slice(-count);
}
