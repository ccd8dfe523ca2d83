/** Rows of cells in columns two blanks apart. The first `left` columns begin together, and the others end together. */
export function textTable(rows: readonly (readonly string[])[], left: number): string[] {
  const widths = rows[0]!.map((_, i) => Math.max(...rows.map((row) => row[i]!.length)));
  return rows.map((row) =>
    row
      .map((cell, i) => (i < left ? cell.padEnd(widths[i]!) : cell.padStart(widths[i]!)))
      .join("  ")
      .trimEnd(),
  );
}
