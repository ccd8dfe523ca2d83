import { describe, expect, it } from "vitest";
import { OptionsError } from "./options-error.ts";
import { linesOfError, print, printable, printableLine, printText } from "./print.ts";

describe("a text of others", () => {
  it.each([
    ["moves the cursor and clears the screen", "a\u001b[2J\u001b[Hb", "a·[2J·[Hb"],
    ["begins a command with one character", "a\u009b31mb\u0090q\u009c", "a·31mb·q·"],
    ["rings", "a\u0007b", "a·b"],
    ["links elsewhere (OSC 8)", "\u001b]8;;http://evil\u001b\\text\u001b]8;;\u0007", "·]8;;http://evil·\\text·]8;;·"],
    ["writes to the clipboard (OSC 52)", "\u001b]52;c;cm0gLXJm\u0007", "·]52;c;cm0gLXJm·"],
    ["returns and deletes", "safe\revil\b\u007f\0", "safe·evil···"],
    ["turns around what follows", "a\u202eb\u2066c\u2069\u200f\u061c", "a·b·c···"],
    ["ends a line in another way", "a\u2028b\u2029c\u0085", "a·b·c·"],
    ["has letters that are not seen", `a${String.fromCodePoint(0xe0041)}b`, "a·b"],
  ])("that %s has dots in those places", (_, text, shown) => {
    expect(printable(text)).toBe(shown);
    expect(printableLine(text)).toBe(shown);
  });

  it("stays as it is in every writing, with emoji, newlines and tabs", () => {
    const text = "müsli 日本語 עברית العربية 👩‍👩‍👧 e\u0301\n\tx";
    expect(printable(text)).toBe(text);
    expect(printableLine("a\nresume: rm\tb")).toBe("a·resume: rm·b");
  });

  it("is printed with the end of its line", () => {
    let out = "";
    printText("a\u001b[1m\nb", { write: (text) => (out += text) });
    expect(out).toBe("a·[1m\nb\n");
  });

  it("begins no line, as a part of a line or of an error", () => {
    const name = "a\nresume: rm\u001b[1m";
    let out = "";
    print([name, "b"], { write: (text) => (out += text) });
    print(name, { write: (text) => (out += text) });
    expect(out).toBe("a·resume: rm·[1m\nb\na·resume: rm·[1m\n");
    expect(linesOfError(new Error(name))).toEqual(["a·resume: rm·[1m"]);
    expect(linesOfError(new OptionsError([{ path: name, problem: "x", remedy: "y" }, "z"]))).toEqual([
      "a·resume: rm·[1m: x; y",
      "z",
    ]);
  });
});
