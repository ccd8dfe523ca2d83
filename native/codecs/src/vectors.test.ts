import { spawnSync } from "node:child_process";
import { describe, expect, it } from "vitest";
import { golden, goldenUnits, textOf } from "./testing/golden.ts";

function check(input: string) {
  return spawnSync(`${import.meta.dirname}/../build/Release/codecs_check`, ["--vectors"], { input, encoding: "utf8" });
}

describe("every C implementation, without JavaScript", () => {
  it.each(golden)("writes and reads the golden bytes of $codec", ({ codec, cases }) => {
    const { status, stdout, stderr } = check(cases.map((vector) => textOf(codec, vector)).join(""));
    const [, compared, comparisons] = stdout.match(/(\d+) golden cases, (\d+) comparisons, 0 different/) ?? [];
    expect(Number(compared), stdout + stderr).toBe(cases.length);
    expect(Number(comparisons)).toBeGreaterThanOrEqual(cases.length);
    expect(status).toBe(0);
  });

  it.each(golden)("is caught when it writes anything else: $codec", ({ codec, cases }) => {
    const text = textOf(codec, cases.at(-1)!);
    const line = codec === "vote" ? /^(nonzero .*)(.)$/m : /^(wire .*)(.)$/m;
    const wrong = text.replace(line, (_, most, last) => most + (Number.parseInt(last, 16) ^ 1).toString(16));
    expect(wrong).not.toBe(text);
    const { status, stdout } = check(wrong);
    expect(status).toBe(1);
    expect(stdout).toMatch(/is not the golden one/);
  });

  it("writes and reads the golden bytes of units, and is caught when it does not", () => {
    const all = check(goldenUnits.join(""));
    expect(all.stdout).toMatch(new RegExp(`^${goldenUnits.length} golden cases, \\d+ comparisons, 0 different$`, "m"));
    expect(all.status).toBe(0);
    const other = goldenUnits.at(-1)!.replace(/^units .*$/m, (units) => units.replaceAll("3", "4"));
    expect(check(other)).toMatchObject({ status: 1, stdout: expect.stringMatching(/is not the golden one/) });
  });

  it("does not pass over what it does not understand", () => {
    expect(check("codec sign\nwidht 3\n").stdout).toContain("line 2 is not understood: widht");
    expect(check("codec sign\nx 00000000\ndone\n").stdout).toContain("line 3 is not understood: done");
    expect(check("codec sing\nx \nwire \nscale 00000000\nsum \ndone\n").stdout).toContain("there is no codec sing");
  });
});
