import { readFileSync } from "node:fs";
import { type DatasetName, datasets } from "@terse/data";
import { type ModelName, models } from "@terse/models";
import { expect, it } from "vitest";
import { readsData } from "../reads-data.ts";

const page = new URL("../../../../docs/data.md", import.meta.url);
const rows = readFileSync(page, "utf8")
  .split("\n")
  .filter((line) => /^\| `[a-z]/.test(line))
  .map((line) => line.split(" | ").map((cell) => cell.replace(/^\| | \|$/g, "").trim()))
  .filter((cells) => cells.length === 4);
const namesIn = (cell: string) => [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name!);

it.each(Object.keys(datasets) as DatasetName[])("docs/data.md says what %s has, and which models read it", (name) => {
  const { fields } = datasets[name];
  const row = rows.find(([names]) => namesIn(names!).includes(name));
  const readers = (Object.keys(models) as ModelName[]).filter((model) => readsData(model, name));
  const expected = [fields.map((field) => `\`${field}\``).join(", "), readers.join(", ")];
  expect(row && [row[2]!.split(";")[0], row[3]], "the last two cells of its row in the first table").toEqual(expected);
});
