import { describe, expect, it, vi } from "vitest";
import { openTerminal, type Terminal } from "./terminal.ts";

/** The lines that a user sees in the end: "\r\x1b[2K" clears the last one. */
function seen(isTTY: boolean, columns: number, use: (terminal: Terminal) => void): string[] {
  let text = "";
  const write = (more: string) => {
    text += more;
    return true;
  };
  use(openTerminal({ isTTY, columns, write } as unknown as NodeJS.WriteStream));
  const shown = (line: string) => line.split("\r\x1b[2K").at(-1)!;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  const clean = (line: string) => shown(line).replaceAll(/\x1b\[\d+m/g, "");
  return text.split("\n").map(clean);
}

const values = {
  loss: "2.3451",
  ms_a_step: "236",
  left: "1:35",
  bytes_per_second: "34,716",
  waiting: "2%",
  sent: "1.05 MB",
  grad_norm: "1.234",
  lr: "5.00e-4",
};

describe("on a terminal", () => {
  it("keeps a line for each logged step above one line that moves", () => {
    const lines = seen(true, 80, (terminal) => {
      terminal.line("model gpt");
      terminal.logged(1, 500, values);
      for (const done of [1, 2, 3]) terminal.moved(done, 500, "1:57");
      terminal.fact({ validation_loss: 3 }, "validation loss 3.0000");
      terminal.logged(11, 500, { ...values, loss: "2.1000" });
      terminal.moved(250, 500, "0:59");
    });
    expect(lines).toEqual([
      "model gpt",
      "  1/500  loss 2.3451  ms a step 236  left 1:35  bytes per second 34,716",
      "validation loss 3.0000",
      " 11/500  loss 2.1000  ms a step 236  left 1:35  bytes per second 34,716",
      `${"━".repeat(20)}${"─".repeat(20)} 250/500  left 0:59`,
    ]);
  });

  it.each([80, 60, 48])(
    "shows loss, milliseconds a step and the time left in %i columns, and never wraps",
    (columns) => {
      const lines = seen(true, columns, (terminal) => {
        terminal.logged(1000, 1000, values);
        terminal.moved(1000, 1000, "1:06:40");
      });
      expect(lines[0]).toContain("1000/1000  loss 2.3451  ms a step 236  left 1:35");
      expect(lines[1]).toContain("1000/1000  left 1:06:40");
      for (const line of lines) expect(line.length).toBeLessThanOrEqual(columns);
    },
  );

  it.each([30, 20, 6])("never wraps the line that moves, in %i columns", (columns) => {
    const lines = seen(true, columns, (terminal) => terminal.moved(10_000, 100_000, "1:06:40"));
    for (const line of lines) expect(line.length).toBeLessThan(columns);
  });

  it("is plain where NO_COLOR or a dumb terminal ask for it", () => {
    let text = "";
    const out = { isTTY: true, columns: 80, write: (more: string) => (text += more) } as unknown as NodeJS.WriteStream;
    const use = () => {
      const terminal = openTerminal(out);
      terminal.line("model gpt");
      terminal.moved(1, 2, "0:01");
      terminal.summary({ time: "0:02" });
    };
    vi.stubEnv("NO_COLOR", "1");
    use();
    expect(text.replaceAll("\r\x1b[2K", "")).not.toContain("\x1b");
    vi.unstubAllEnvs();
    vi.stubEnv("TERM", "dumb");
    text = "";
    use();
    expect(text).toBe("model gpt\ntime: 0:02\n");
    vi.unstubAllEnvs();
  });

  it("shows every value where the terminal is wide", () => {
    const [line] = seen(true, 160, (terminal) => terminal.logged(1, 500, values));
    for (const value of Object.values(values)) expect(line).toContain(value);
  });

  it("leaves no moving line behind at the end", () => {
    const use = (terminal: Terminal) => {
      terminal.moved(1, 2, "0:01");
      terminal.summary({ time: "0:02" });
    };
    expect(seen(true, 80, use)).toEqual(["", "time             0:02", ""]);
  });
});

it("writes a line of keys and values for each logged step elsewhere, and nothing that moves", () => {
  const lines = seen(false, 80, (terminal) => {
    terminal.moved(1, 500, "1:57");
    terminal.logged(1, 500, { loss: "2.3451", ms_a_step: "236" });
  });
  expect(lines).toEqual(["step: 1/500  loss: 2.3451  ms_a_step: 236", ""]);
});

describe("texts of others", () => {
  const hostile = "a\u001b[2Jb\u0007c\u009b1md\u001b]8;;http://evil\u001b\\e\u001b]52;c;cm0=\u0007f\u202eg\rh";
  const shown = "a·[2Jb·c·1md·]8;;http://evil·\\e·]52;c;cm0=·f·g·h";
  const doors: Record<string, (terminal: Terminal, text: string) => void> = {
    line: (terminal, text) => terminal.line(text),
    "a logged value": (terminal, text) => terminal.logged(1, 2, { loss: text }),
    "the key of a logged value": (terminal, text) => terminal.logged(1, 2, { [text]: "1" }),
    moved: (terminal, text) => terminal.moved(1, 2, text),
    fact: (terminal, text) => terminal.fact({ value: text }, text),
    summary: (terminal, text) => terminal.summary({ run: text }),
    sample: (terminal, text) => terminal.summary({ "sample after": text }),
  };

  it.each(Object.keys(doors).flatMap((door) => [true, false].map((isTTY) => [door, isTTY] as const)))(
    "give the terminal no command, as %s, where it is one: %s",
    (door, isTTY) => {
      let text = "";
      const write = (more: string) => {
        text += more;
        return true;
      };
      doors[door]!(
        openTerminal({ isTTY, columns: 500, write } as unknown as NodeJS.WriteStream),
        `${hostile}\nresume: rm`,
      );
      if (!(door === "moved" && !isTTY)) expect(text).toContain(shown);
      // What is ours: dim, bold, their ends, and the line that moves.
      // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
      const own = /\x1b\[(?:1|2|22)m|\r\x1b\[2K/g;
      expect(text.replaceAll(own, "")).not.toMatch(/(?!\n)[\p{Cc}\p{Bidi_Control}]/u);
      if (door !== "sample") expect(text).not.toMatch(/^resume: rm/m);
    },
  );
});
