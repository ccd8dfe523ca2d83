/** `./terse train --dry-run`, as a user runs it. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { saveModel } from "@terse/checkpoint";
import { Gpt2 } from "@terse/models";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { readArguments, type TrainArguments } from "../arguments.ts";
import { dryRun } from "./dry-run.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-dry-run-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

/** What it prints. */
async function printed(...argv: string[]): Promise<string> {
  const write = vi.spyOn(process.stdout, "write").mockReturnValue(true);
  try {
    expect(await dryRun(readArguments(["train", "--dry-run", ...argv], {}) as TrainArguments)).toBe(0);
    return write.mock.calls.map(([text]) => String(text)).join("");
  } finally {
    write.mockRestore();
  }
}

it("with --flops has one time for the recipe, in its first lines and in the table", async () => {
  const text = await printed(
    ...["gpt-small-lion", "--world-size=8", "--link=100gbit,1us", "--flops=1e15", "--overlap=off"],
    ...["--optimizer.name=lion-cub", "--exchange.vote=parameter-server"],
  );
  const [, step, waiting] =
    /^ {2}steps 0 to \d+ +(\S+ \S+): forward and backward .* of which (\S+ \S+) after backward$/m.exec(text)!;
  expect(text).toMatch(new RegExp(`^ {2}this recipe .* ${step} +${waiting}$`, "m"));
});

it("asks for the weights of --init-from, compares them with the model, and says of them what a run does", async () => {
  const weights = join(folder, "weights");
  const shape = { vocabulary: 256, context: 32, width: 32, heads: 2, layers: 1 };
  const given = Object.entries(shape).map(([key, value]) => `--model.${key}=${value}`);
  const argv = ["--model.name=gpt2", ...given, `--init-from=${weights}`];
  await expect(printed(...argv)).rejects.toThrow(`there is no folder ${weights}; terse downloads no weights`);
  const model = new Gpt2(shape);
  await saveModel(weights, model.namedParameters(), model.config);
  const text = await printed(...argv);
  expect(text).toMatch(/^dry run: /);
  expect(text).toContain(`\nthe weights are those of ${weights}\nthe model is that of `);
  await expect(printed(...argv, "--model.heads=4")).rejects.toThrow(
    /^model\.heads: is given as 4, and .*config\.json says 2; leave it out$/,
  );
  rmSync(join(weights, "config.json")); // then the model is the recipe's
  await expect(printed(...argv, "--model.width=64")).rejects.toThrow(
    /the weights in .* do not fit this model: .*is \(256, 32\) in the file and \(256, 64\) in the model/,
  );
});
