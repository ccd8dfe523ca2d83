import { describe, expect, it } from "vitest";
import { furtherPictures, pictures } from "./pictures.ts";
import { readLines } from "./recording.ts";

const further = Object.entries(furtherPictures).flatMap(([suite, ofSuite]) =>
  Object.entries(ofSuite).map(([end, picture]) => [`${suite}-${end}`, suite, picture] as const),
);
const all = [...Object.entries(pictures).map(([suite, picture]) => [suite, suite, picture] as const), ...further];

describe.each(all)("the picture %s", (_, suite, picture) => {
  const lines = readLines(new URL(`../../../docs/results/${suite}.jsonl`, import.meta.url));

  it("is drawn of all settings, of each alone, and of none", () => {
    const settings = [...new Set(lines.map(({ setting }) => setting))];
    const drawn = settings.map((alone) =>
      picture(
        lines.filter(({ setting }) => setting === alone),
        [],
      ),
    );
    for (const [i, one] of [picture(lines, []), ...drawn, picture([], [])].entries())
      if (one !== undefined) expect(one, ["all", ...settings, "none"][i]).not.toMatch(/NaN|undefined|Infinity/);
    // Rows of papers that are not yet measured have no picture; papers/pictures.test.ts draws each from numbers of its
    // own.
    if (suite !== "papers") expect(drawn.some((one) => one !== undefined)).toBe(true);
    expect(picture([], [])).toBeUndefined();
  });
});
