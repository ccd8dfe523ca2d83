import type { Inventory } from "@terse/data";
import { expect, it } from "vitest";
import { inventoryLines } from "./inventory-lines.ts";

const group = (bytes: number, count: number, names: string[], endings = [".txt"]) => ({ count, bytes, names, endings });

it("one line says what is read, what is held out, and what is left out and why", () => {
  const inventory: Inventory = {
    training: group(12_100_000, 3, ["a.txt", "b.txt", "c.txt"]),
    heldOut: { ...group(5, 1, ["stories-valid.txt"]), split: "validation" },
    leftOut: [
      { ...group(9, 2, ["x.bin", "y.bin"], [".bin"]), why: "no text" },
      { ...group(9, 4000, ["a.png", "b.jpg", "c.png"], [".png", ".jpg"]), why: "pictures" },
    ],
    passedOver: ["12 rows of train.tsv with too few columns"],
  };
  expect(inventoryLines(inventory)).toEqual([
    "data: trains on 3 files (.txt), a.txt …, 12.1 MB; held out as the validation split: stories-valid.txt; " +
      "left out: x.bin, y.bin (no text), 4,000 files, a.png … (pictures); passed over: 12 rows of train.tsv with too few columns",
  ]);
  expect(inventoryLines({ ...inventory, leftOut: [] }, "all")).toEqual([
    "data: held out as the validation split: stories-valid.txt; passed over: 12 rows of train.tsv with too few columns",
  ]);
  const one: Inventory = { training: group(10, 1, ["a.txt"]), leftOut: [] };
  expect(inventoryLines(one, "all")).toEqual(["data: evaluates on a.txt, 10 B"]);
  expect(inventoryLines(one, "share")).toEqual(["data: evaluates on what is held out of a.txt, 10 B"]);
  expect(inventoryLines(one)).toEqual(["data: trains on a.txt, 10 B"]);
  expect(inventoryLines(undefined)).toEqual([]);
});

it("names cannot move the cursor or break the line", () => {
  expect(inventoryLines({ training: group(10, 1, ["a\u001b[2J\n.txt"]), leftOut: [] })).toEqual([
    "data: trains on a·[2J·.txt, 10 B",
  ]);
});
