/** The program of docs/how-to/train-your-own-model.md, started as the page starts it. */
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { freePort } from "./start-ranks.ts";

const page = readFileSync(join(import.meta.dirname, "../../docs/how-to/train-your-own-model.md"), "utf8");
const block = (language: string) => new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(page)![1]!;

it("trains on two ranks, prints what the page says, and saves the model", async () => {
  const folder = mkdtempSync(join(import.meta.dirname, "own-program-")); // where imports lead to the packages
  try {
    writeFileSync(join(folder, "train.ts"), block("ts"));
    const line = block("sh").replace("29500", `${await freePort()}`);
    const { stdout, stderr } = spawnSync("bash", ["-c", line], {
      cwd: folder,
      encoding: "utf8",
      env: {
        ...process.env,
        PATH: `${dirname(process.execPath)}:${process.env["PATH"]}`,
        NODE_OPTIONS: "--conditions=@terse/source --no-warnings",
        OMP_NUM_THREADS: "1",
      },
    });
    expect(stderr).toBe("");
    // Processors differ in the last bits of a gradient, and so in some votes.
    const withoutLosses = (text: string) => text.replaceAll(/loss [\d.]+/g, "loss");
    expect(withoutLosses(stdout)).toBe(withoutLosses(block("text")));
    const losses = [...stdout.matchAll(/loss ([\d.]+)/g)].map(([, loss]) => Number(loss));
    expect(losses.at(-1)).toBeLessThan(0.3); // ln 2 without learning
    for (const file of ["config.json", "model.safetensors"])
      expect(existsSync(join(folder, "classifier", file))).toBe(true);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});
