/**
 * A training of two steps by the program of `./terse train`, whose weights show whether all ways to start it are equal.
 */
import { createHash } from "node:crypto";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { nodeFlags } from "../../tools/programs.ts";

const main = join(import.meta.dirname, "../../apps/train/src/main.ts");

export class ShortTraining implements Disposable {
  readonly #folder = mkdtempSync(join(tmpdir(), "terse-short-"));
  readonly #text = join(this.#folder, "text.txt");

  constructor() {
    writeFileSync(this.#text, "the quick brown fox jumps over the lazy dog. ".repeat(500));
  }

  /** The command of one rank, or of the launcher of `./terse` itself; its files are in a folder of this name. */
  command(name: string, ...more: readonly string[]): string[] {
    const options = [
      "--steps=2",
      "--model.preset=nano",
      "--evaluate.windows=4",
      "--sample.bytes=0",
      "--schedule.warmup=0",
    ];
    const files = [`--data=${this.#text}`, `--out=${join(this.#folder, name)}`];
    return [process.execPath, ...nodeFlags, main, "train", ...options, ...files, ...more];
  }

  /** A digest of the weights that a training has saved. */
  weights(name: string): string {
    const [file] = globSync("**/model.safetensors", { cwd: join(this.#folder, name) });
    if (file === undefined) return `${name} has saved no weights`;
    return createHash("sha256")
      .update(readFileSync(join(this.#folder, name, file)))
      .digest("hex");
  }

  /** What a training has written to its metrics.jsonl. */
  metrics(name: string): Record<string, unknown>[] {
    const lines = readFileSync(join(this.#folder, name, "metrics.jsonl"), "utf8")
      .trim()
      .split("\n");
    return lines.map((line) => JSON.parse(line));
  }

  [Symbol.dispose](): void {
    rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20 });
  }
}
