import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { describe, expect, it } from "vitest";

/** A program that writes two lines to `output`, and then says on standard error that it is there. */
async function ended(output: "pipe" | number, options: string): Promise<{ code: number | null; said: string }> {
  const program = `
    const { watchOutput } = await import(${JSON.stringify(new URL("watch-output.ts", import.meta.url).href)});
    watchOutput(${options});
    await new Promise((resolve) => process.stdin.on("end", resolve).resume());
    for (let i = 0; i < 2; i++) {
      process.stdout.write("line\\n");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    process.stderr.write("at its end");`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["pipe", output, "pipe"] });
  let said = "";
  child.stderr!.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  child.stdout?.destroy();
  child.stdin!.end();
  const [code] = (await once(child, "close")) as [number | null];
  return { code, said };
}

describe("a program whose output has no reader any more", () => {
  it("ends as other programs of a shell do, and says nothing", async () => {
    expect(await ended("pipe", "{}")).toEqual({ code: 141, said: "" });
  });

  it("goes on where it is a run", async () => {
    expect(await ended("pipe", "{ goesOn: true }")).toEqual({ code: 0, said: "at its end" });
  });
});

describe.skipIf(!existsSync("/dev/full"))("a program whose output is on a full disk", () => {
  const onFullDisk = async (options: string) => {
    const full = openSync("/dev/full", "w");
    try {
      return await ended(full, options);
    } finally {
      closeSync(full);
    }
  };

  it("ends with one sentence", async () => {
    const { code, said } = await onFullDisk("{}");
    expect([code, said]).toEqual([
      1,
      expect.stringMatching(/^error: standard output cannot be written: ENOSPC[^\n]*; free some space, [^\n]*\n$/),
    ]);
  });

  it("goes on where it is a run, and says once that what is printed is lost", async () => {
    const { code, said } = await onFullDisk("{ goesOn: true }");
    expect([code, said]).toEqual([
      0,
      expect.stringMatching(
        /^standard output cannot be written, and what is printed is lost: ENOSPC[^\n]*\nat its end$/,
      ),
    ]);
  });
});
