import { expect, it } from "vitest";
import { type Conflict, withoutConflicts } from "./conflicts.ts";
import { OptionsError } from "./options-error.ts";

interface Options {
  readonly teeth: number;
  readonly claws?: string;
}

const conflicts: readonly Conflict<Options>[] = [
  {
    option: "claws",
    when: ({ teeth, claws }) => teeth === 0 && claws !== undefined,
    because: ({ claws }) => `a cub has none, and claws is ${claws}`,
    remedy: "leave claws out",
  },
  { option: "teeth", when: ({ teeth }) => teeth > 30, because: () => "a lion has 30", remedy: "take 30 or fewer" },
];

it("gives back options without a conflict", () => {
  const options = { teeth: 30, claws: "long" };
  expect(withoutConflicts(options, conflicts, "lion")).toBe(options);
});

it("names every conflict by the path of its option", () => {
  const all: readonly Conflict<Options>[] = [...conflicts, { ...conflicts[1]!, when: () => true }];
  const check = () => withoutConflicts({ teeth: 0, claws: "long" }, all, "lion");
  expect(check).toThrow(OptionsError);
  expect(check).toThrow(
    "lion.claws: a cub has none, and claws is long; leave claws out\nlion.teeth: a lion has 30; take 30 or fewer",
  );
});
