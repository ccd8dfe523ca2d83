import { extname } from "node:path";
import { unpackedName } from "../content/packing.ts";
import { csvRows } from "./csv.ts";
import type { TableOptions, TableRow } from "./table.ts";
import { tsvRows } from "./tsv.ts";

/** The rows of a .csv or .tsv file, with the values of these columns. Throws `DataError`. */
export const tableFile = (path: string, columns: readonly string[], options: TableOptions): AsyncGenerator<TableRow> =>
  (extname(unpackedName(path)).toLowerCase() === ".csv" ? csvRows : tsvRows)(path, columns, options);
