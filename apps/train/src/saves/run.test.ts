import { spawn } from "node:child_process";
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { thisProcess } from "@terse/checkpoint";
import { loopback } from "@terse/collectives";
import { Arena } from "@terse/tensor";
import { afterAll, expect, it } from "vitest";
import { buildData, buildModel, buildOptimizer } from "../build.ts";
import { readRecipe } from "../recipe.ts";
import { openRun } from "./open-run.ts";
import type { Run } from "./run.ts";

const folder = mkdtempSync(join(tmpdir(), "terse-run-"));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const text = join(folder, "text");
writeFileSync(text, "the quick brown fox jumps over the lazy dog. ".repeat(200));
const recipe = readRecipe("gpt-small", ["model.preset=nano", `data.path=${JSON.stringify(text)}`, "steps=4"]);

/** Begins or resumes a run on some ranks; resolves to what each has made of it. */
async function onRanks<T>(ranks: number, resume: string | undefined, use: (run: Run) => Promise<T>): Promise<T[]> {
  const groups = loopback(ranks);
  const args = { overrides: [], ...(resume === undefined ? { out: join(folder, "run") } : { resume }) };
  try {
    return await Promise.all(
      groups.map(async (group) => {
        await using run = await openRun(resume === undefined ? recipe : undefined, group, args);
        const model = buildModel(run.recipe);
        await using data = await buildData(run.recipe, model, group);
        await using optimizer = await buildOptimizer(run.recipe, new Arena(model), group);
        await run.begin({ model, data, optimizer });
        return await use(run);
      }),
    );
  } finally {
    await Promise.all(groups.map((group) => group.close()));
  }
}

it("says that one rank has saved it, and what of metrics.jsonl it cannot read", async () => {
  await onRanks(1, undefined, async (run) => {
    run.log({ step: 0, "train/loss": 5 });
    expect(run.notes.filter((note) => note.startsWith("metrics"))).toEqual([]);
    expect(await run.save(1)).toBeUndefined();
  });
  const saved = join(folder, "run");
  appendFileSync(join(saved, "metrics.jsonl"), '{"step":1,"train/lo');
  const [first] = await onRanks(2, saved, async ({ notes }) => notes);
  expect(first!.find((note) => note.startsWith("saved by"))).toMatch(
    /^saved by 1 rank, goes on with 2: 8 rows a step, before 4/,
  );
  expect(first).toContain(`${join(saved, "metrics.jsonl")}: the last line is cut short, and is left out`);
});

it("does not begin in a folder that another start has used while this one waited for its lock", async () => {
  const out = join(folder, "twice");
  mkdirSync(out);
  const { pid } = spawn("sleep", ["1"]); // the other start
  const since = readFileSync(`/proc/${pid}/stat`, "utf8").replace(/.*\) /, "").split(" ")[19]!;
  writeFileSync(join(out, "lock.json"), JSON.stringify({ ...thisProcess(), start: "other", rank: 0, pid, since }));
  setTimeout(() => writeFileSync(join(out, "metrics.jsonl"), "its own"), 300);
  const [group] = loopback(1);
  await expect(openRun(recipe, group!, { overrides: [], out })).rejects.toThrow(/twice is not empty.* another --out$/);
  expect(readFileSync(join(out, "metrics.jsonl"), "utf8")).toBe("its own");
  await group!.close();
});

it("says of a folder that is not empty what can be done with the run in it", async () => {
  const out = join(folder, "ended");
  const begin = async () => {
    const [group] = loopback(1);
    await openRun(recipe, group!, { overrides: [], out }).finally(() => group!.close());
  };
  mkdirSync(out);
  for (const name of ["recipe.json", "metrics.jsonl"]) writeFileSync(join(out, name), "");
  await expect(begin()).rejects.toThrow(
    `${out} is not empty, and a run needs its own folder: choose another --out, or begin the run in it anew with --resume auto: it has no save yet`,
  );
  mkdirSync(join(out, "step-2"));
  await expect(begin()).rejects.toThrow(/choose another --out, or continue the run in it with --resume$/);
});
