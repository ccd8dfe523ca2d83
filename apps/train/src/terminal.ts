/** Progress as one line that is redrawn on a terminal, or as `key: value` lines elsewhere. */

export interface Terminal {
  line(text: string): void;
  progress(done: number, of: number, values: Record<string, string>): void;
  fact(values: Record<string, string | number>, text: string): void;
  summary(values: Record<string, string>): void;
  close(): void;
}

export function openTerminal(out: NodeJS.WriteStream): Terminal {
  return out.isTTY ? live(out) : plain(out);
}

function live(out: NodeJS.WriteStream): Terminal {
  const dim = (text: string) => `\x1b[2m${text}\x1b[22m`;
  const bold = (text: string) => `\x1b[1m${text}\x1b[22m`;
  let drawn = false;
  const clear = () => {
    if (drawn) out.write("\r\x1b[2K");
    drawn = false;
  };
  const line = (text: string) => {
    clear();
    out.write(`${text}\n`);
  };
  return {
    line: (text) => line(dim(text)),
    progress(done, of, values) {
      const width = 16;
      const filled = Math.round((width * done) / of);
      const bar = "━".repeat(filled) + dim("━".repeat(width - filled));
      const parts = Object.entries(values).map(([key, value]) => `${dim(words(key))} ${value}`);
      let text = `${bar} ${String(done).padStart(String(of).length)}/${of}`;
      for (const part of parts) if (visible(`${text}  ${part}`) < (out.columns ?? 100)) text += `  ${part}`;
      clear();
      out.write(text);
      drawn = true;
    },
    fact: (_, text) => line(text),
    summary(values) {
      clear();
      out.write("\n");
      for (const [key, value] of Object.entries(values))
        out.write(key.startsWith("sample") ? `\n${bold(key)}\n${value}\n` : `${bold(key.padEnd(16))} ${value}\n`);
    },
    close: clear,
  };
}

function plain(out: NodeJS.WriteStream): Terminal {
  const pairs = (values: Record<string, string | number>) =>
    Object.entries(values)
      .map(([key, value]) => `${key}: ${value}`)
      .join("  ");
  return {
    line: (text) => out.write(`${text}\n`),
    progress: (done, of, values) => out.write(`${pairs({ step: `${done}/${of}`, ...values })}\n`),
    fact: (values) => out.write(`${pairs(values)}\n`),
    summary(values) {
      for (const [key, value] of Object.entries(values))
        out.write(key.startsWith("sample") ? `${key}:\n${value}\n` : `${key}: ${value}\n`);
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
