import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { run } from "./run.ts";
import type { Progress } from "./steps.ts";
import { scratchFolder } from "./testing/scratch-folder.ts";
import { installFolder } from "./toolchain.ts";

const tools = (home: string) => readdirSync(home).filter((name) => name !== "locks");
const progress: Progress = { run, say: () => {} };

describe("installFolder", () => {
  it("gives the folder its name only when it is complete", async () => {
    const home = scratchFolder();
    const folder = join(home, "tool-1.0");
    await installFolder(progress, folder, async (partial) => {
      expect(existsSync(folder)).toBe(false);
      writeFileSync(join(partial, "file"), "whole");
    });
    expect(readFileSync(join(folder, "file"), "utf8")).toBe("whole");
    expect(tools(home)).toEqual(["tool-1.0"]);
  });

  it("removes what a failed step wrote", async () => {
    const home = scratchFolder();
    const failing = installFolder(progress, join(home, "tool-1.0"), async (partial) => {
      writeFileSync(join(partial, "half"), "");
      throw new Error("the network went away");
    });
    await expect(failing).rejects.toThrow("the network went away");
    expect(tools(home)).toEqual([]);
  });

  it("does not fill a folder that exists", async () => {
    const folder = join(scratchFolder(), "tool-1.0");
    mkdirSync(folder);
    await installFolder(progress, folder, () => Promise.reject(new Error("filled again")));
  });

  it("fills once when two processes start at the same time", async () => {
    const folder = join(scratchFolder(), "tool-1.0");
    let fills = 0;
    const fill = async (partial: string) => {
      fills++;
      await new Promise((resolve) => setTimeout(resolve, 50));
      writeFileSync(join(partial, "file"), "");
    };
    await Promise.all([installFolder(progress, folder, fill), installFolder(progress, folder, fill)]);
    expect(fills).toBe(1);
    expect(readdirSync(folder)).toEqual(["file"]);
  });

  it("removes temporary folders of killed processes: this tool's at once, others after a day", async () => {
    const home = scratchFolder();
    for (const name of ["tool-1.0.partial-a", "other-2.0.partial-b", "other-2.0.partial-c"])
      mkdirSync(join(home, name));
    utimesSync(join(home, "other-2.0.partial-b"), 1e9, 1e9);
    await installFolder(progress, join(home, "tool-1.0"), async () => {});
    expect(tools(home).sort()).toEqual(["other-2.0.partial-c", "tool-1.0"]);
  });

  const program = (folder: string) => `
    import { installFolder } from ${JSON.stringify(join(import.meta.dirname, "toolchain.ts"))};
    await installFolder({ say() {} }, ${JSON.stringify(folder)}, async () => { console.log("filling"); await new Promise((r) => setTimeout(r, 60_000)); });`;

  it("cleans up when it is interrupted, and exits with the signal's code", async () => {
    const home = scratchFolder();
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program(join(home, "tool-1.0"))]);
    await once(child.stdout, "data");
    child.kill("SIGINT");
    expect(await once(child, "exit")).toEqual([130, null]);
    expect(tools(home)).toEqual([]);
  });

  it("releases the lock when it is killed, and the next process does the work", async () => {
    const home = scratchFolder();
    const folder = join(home, "tool-1.0");
    const child = spawn(process.execPath, ["--input-type=module-typescript", "-e", program(folder)]);
    await once(child.stdout, "data");
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(existsSync(folder)).toBe(false);
    await installFolder(progress, folder, async (partial) => writeFileSync(join(partial, "file"), ""));
    expect(tools(home)).toEqual(["tool-1.0"]);
  });
});
