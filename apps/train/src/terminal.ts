/**
 * Progress on a terminal: one line a logged step, and below them one line that moves. Elsewhere: `key: value` lines.
 */
import { columnsOf, fitted, hasStyles, isTerminal, printable, printableLine } from "@terse/options";
import { MovingLine } from "./moving-line.ts";

export interface Terminal {
  line(text: string): void;
  /** A step was logged. The most important values come first: the terminal's line leaves out what does not fit. */
  logged(done: number, of: number, values: Record<string, string>): void;
  /** A step has ended; `left` is the time until the last one. */
  moved(done: number, of: number, left: string): void;
  fact(values: Record<string, string | number>, text: string): void;
  summary(values: Record<string, string>): void;
  close(): void;
}

/** Texts of others come with the values, so all of them are made printable here, before colours are added. */
export function openTerminal(out: NodeJS.WriteStream): Terminal {
  const terminal = isTerminal(out) ? live(out) : plain(out);
  return {
    ...terminal,
    line: (text) => terminal.line(printableLine(text)),
    logged: (done, of, values) => terminal.logged(done, of, mapped(values, printableLine)),
    moved: (done, of, left) => terminal.moved(done, of, printableLine(left)),
    fact: (values, text) => terminal.fact(mapped(values, printableLine), printableLine(text)),
    summary: (values) =>
      terminal.summary(mapped(values, (value, key) => (isSample(key) ? printable : printableLine)(value))),
  };
}

/** The only text of several lines. */
const isSample = (key: string) => key.startsWith("sample");

const mapped = (values: Record<string, string | number>, change: (value: string, key: string) => string) =>
  Object.fromEntries(
    Object.entries(values).map(([key, value]) => [printableLine(key), change(String(value), key)] as const),
  );

function live(out: NodeJS.WriteStream): Terminal {
  const styled = (style: number) => (text: string) => (hasStyles() ? `\x1b[${style}m${text}\x1b[22m` : text);
  const [bold, dim] = [styled(1), styled(2)];
  const columns = () => columnsOf(out);
  const moving = new MovingLine(out);
  const count = (done: number, of: number) => `${String(done).padStart(String(of).length)}/${of}`;
  const close = () => moving.show("");
  return {
    line: (text) => moving.say(dim(text)),
    logged(done, of, values) {
      let text = count(done, of);
      for (const [key, value] of Object.entries(values)) {
        const longer = `${text}  ${dim(words(key))} ${value}`;
        if (visible(longer) > columns()) break;
        text = longer;
      }
      moving.say(text);
    },
    moved(done, of, left) {
      const room = columns() - 1; // a line that fills the last column may wrap
      const whole = `${count(done, of)}  ${dim("left")} ${left}`;
      const text = visible(whole) <= room ? whole : fitted(count(done, of), room);
      const width = Math.min(40, room - visible(text) - 1);
      const filled = Math.round((width * done) / of);
      moving.show(width < 4 ? text : `${"━".repeat(filled)}${dim("─".repeat(width - filled))} ${text}`);
    },
    fact: (_, text) => moving.say(text),
    summary(values) {
      close();
      out.write("\n");
      for (const [key, value] of Object.entries(values))
        out.write(isSample(key) ? `\n${bold(key)}\n${value}\n` : `${bold(key.padEnd(16))} ${value}\n`);
    },
    close,
  };
}

function plain(out: NodeJS.WriteStream): Terminal {
  const pairs = (values: Record<string, string | number>) =>
    Object.entries(values)
      .map(([key, value]) => `${key}: ${value}`)
      .join("  ");
  return {
    line: (text) => out.write(`${text}\n`),
    logged: (done, of, values) => out.write(`${pairs({ step: `${done}/${of}`, ...values })}\n`),
    moved() {},
    fact: (values) => out.write(`${pairs(values)}\n`),
    summary(values) {
      for (const [key, value] of Object.entries(values))
        out.write(isSample(key) ? `${key}:\n${value}\n` : `${key}: ${value}\n`);
    },
    close() {},
  };
}

const words = (key: string) => key.replaceAll("_", " ");

/** The width of a text without its colour codes. */
function visible(text: string): number {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  return text.replaceAll(/\x1b\[\d+m/g, "").length;
}
