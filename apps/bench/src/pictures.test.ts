import { describe, expect, it } from "vitest";
import { pictures } from "./pictures.ts";
import { readLines } from "./recording.ts";

describe.each(Object.keys(pictures))("the picture of %s", (suite) => {
  const lines = readLines(new URL(`../../../docs/results/${suite}.jsonl`, import.meta.url));

  it("is drawn of all settings, of each alone, and of none", () => {
    const settings = [...new Set(lines.map(({ setting }) => setting))];
    const drawn = settings.map((alone) =>
      pictures[suite]!(
        lines.filter(({ setting }) => setting === alone),
        [],
      ),
    );
    for (const [i, picture] of [pictures[suite]!(lines, []), ...drawn, pictures[suite]!([], [])].entries())
      if (picture !== undefined) expect(picture, ["all", ...settings, "none"][i]).not.toMatch(/NaN|undefined|Infinity/);
    expect(drawn.some((picture) => picture !== undefined)).toBe(true);
    expect(pictures[suite]!([], [])).toBeUndefined();
  });
});
