import { execFileSync } from "node:child_process";
import { expect, it } from "vitest";
import { writeTokenizerCommand } from "./write-tokenizer.ts";

it.each(["/my/weights", "/it's mine", '/a "b" $c'])("names the folder %s, also through a shell", (folder) => {
  const script = `python() { printf '%s' "$2"; }; ${writeTokenizerCommand(folder)}`;
  const program = execFileSync("sh", ["-c", script], { encoding: "utf8" });
  const [, text] = /; f = (".*"); T\.from_pretrained\(f\)\.save_pretrained\(f\)$/.exec(program)!;
  expect(JSON.parse(text!)).toBe(folder);
});
