import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { readMetrics } from "./read-metrics.ts";

describe("metrics.jsonl", () => {
  let run: string;
  beforeEach(() => {
    run = mkdtempSync(join(tmpdir(), "terse-metrics-"));
  });
  afterEach(() => rmSync(run, { recursive: true, force: true }));
  const file = () => join(run, "metrics.jsonl");
  const read = async (content: string | Buffer) => {
    writeFileSync(file(), content);
    const problems: string[] = [];
    const lines = await readMetrics(run, (problem) => problems.push(problem.replace(`${file()}: `, "")));
    expect(problems.length).toBeLessThan(2);
    return { lines, problem: problems[0] };
  };

  it("says which lines of metrics.jsonl are none, and reads the others", async () => {
    const line = (step: number) => `{"step":${step}}\n`;
    const [whole, cut] = [line(0) + line(1), '{"step":2,"train/lo'];
    const lines = [{ step: 0 }, { step: 1 }];
    expect(await read("")).toEqual({ lines: [], problem: undefined });
    expect(await read(whole)).toEqual({ lines, problem: undefined });
    expect(await read(whole.trimEnd())).toEqual({ lines, problem: undefined });
    expect(await read(whole + cut)).toEqual({ lines, problem: "the last line is cut short, and is left out" });
    expect(await read(`${line(0)}${cut}\n${line(1)}`)).toEqual({
      lines,
      problem: "line 2 cannot be read, and is left out",
    });
    expect((await read(`null\n${whole}\n[]\n${cut}`)).problem).toBe(
      "4 lines, from line 1 on, cannot be read, and are left out",
    );
  });

  it("reads a line that is longer than what is read at once, and lines that end as in Windows", async () => {
    const long = `{"step":0,"sample/text":"${"é".repeat(70_000)}"}\n{"step":1}\n`;
    expect((await read(long)).lines.map(({ step }) => step)).toEqual([0, 1]);
    expect(await read('{"step":0}\r\n{"step":1}\r\n')).toEqual({
      lines: [{ step: 0 }, { step: 1 }],
      problem: undefined,
    });
  });

  it("leaves out a line that is longer than any of metrics, and reads those around it", async () => {
    const long = Buffer.concat([Buffer.from('{"step":1,"a":"'), Buffer.alloc(17 << 20, "x"), Buffer.from('"}\n')]);
    const around = [Buffer.from('{"step":0}\n'), long, Buffer.from('{"step":2}\n')];
    expect(await read(Buffer.concat(around))).toEqual({
      lines: [{ step: 0 }, { step: 2 }],
      problem: "line 2 cannot be read, and is left out",
    });
    expect(await read(Buffer.concat(around.slice(0, 2)).subarray(0, -3))).toEqual({
      lines: [{ step: 0 }],
      problem: "the last line is cut short, and is left out",
    });
  });

  it("that is none is refused in a sentence, and waits for nobody", async () => {
    await expect(readMetrics(run)).rejects.toThrow(`${run} has no metrics.jsonl: name the folder of a run`);
    execFileSync("mkfifo", [file()]);
    await expect(readMetrics(run)).rejects.toThrow(
      `Cannot read ${file()}: it is a pipe, not a file; name a regular file.`,
    );
    rmSync(file());
    mkdirSync(file());
    await expect(readMetrics(run)).rejects.toThrow(`Cannot read ${file()}: `);
  });
});
