import { expect, it } from "vitest";
import { usageOf } from "./arguments.ts";
import { subjects, suites } from "./suites.ts";

it("are what ./terse bench --help shows without Node: help.txt (made anew by ./terse test suites -u)", async () => {
  await expect(usageOf(suites, subjects)).toMatchFileSnapshot("help.txt");
});
