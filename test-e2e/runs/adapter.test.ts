/** An adapter whose base has moved, through the launcher: what begins with it, and what goes on. */
import { renameSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { terseIn, tinyTraining, trainingFolder } from "./terse.ts";

it("training begins with an adapter whose base has moved, with --base, on two ranks and with --resume auto", async () => {
  const { folder, text } = trainingFolder("adapter");
  const errorOf = async (...args: string[]) => {
    const { code, err } = await terseIn(folder, args);
    return code === 0 ? "" : err.trimEnd();
  };
  expect(await errorOf(...tinyTraining(text), "--steps=2", "--out=base")).toBe("");
  const tuned = ["train", "fine-tune", "--data", text, "--logEvery=1", "--evaluate.windows=8", "--advise=false"];
  const first = ["--init-from=base", "--adapter.name=lora", "--adapter.rank=2", "--steps=2", "--out=first"];
  expect(await errorOf(...tuned, ...first)).toBe("");

  renameSync(join(folder, "base"), join(folder, "moved"));
  const next = [...tuned, "--init-from=first", "--nproc-per-node=2", "--steps=4", "--out=next", "--resume=auto"];
  expect(await errorOf(...next)).toMatch(/^error: [^\n]*--base[^\n]*$/);
  expect(await errorOf(...next, "--base=moved")).toBe("");
  expect(await errorOf(...next, "--base=moved/best")).toBe(""); // from its last save
});
