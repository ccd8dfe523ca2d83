import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { openTokenizer } from "./tokenizers.ts";
import { writeTokenizerCommand } from "./write-tokenizer.ts";

it.each(["/my/weights", "/it's mine", '/a "b" $c'])("names the folder %s, also through a shell", (folder) => {
  const script = `python() { printf '%s' "$2"; }; ${writeTokenizerCommand(folder)}`;
  const program = execFileSync("sh", ["-c", script], { encoding: "utf8" });
  const [, text] = /; f = (".*"); T\.from_pretrained\(f\)\.save_pretrained\(f\)$/.exec(program)!;
  expect(JSON.parse(text!)).toBe(folder);
});

it("is what is said of a tokenizer in another form, by its folder and by its file", async () => {
  const folder = mkdtempSync(join(tmpdir(), "terse-form-"));
  try {
    const file = join(folder, "tokenizer.model");
    writeFileSync(file, "");
    for (const name of [folder, file])
      await expect(openTokenizer(name)).rejects.toThrow(
        `${folder} has its tokenizer in tokenizer.model, and no tokenizer.json, which alone is read; transformers writes it: ${writeTokenizerCommand(folder)}.`,
      );
    writeFileSync(join(folder, "tokenizer.json"), "{}");
    await expect(openTokenizer(file)).rejects.toThrow(
      `${file} is in another form; name ${join(folder, "tokenizer.json")}, which is read.`,
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
});
