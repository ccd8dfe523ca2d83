const [mostNames, mostLetters] = [8, 60];

/** Names in a message: the first ones, shortened. A file may have 300,000 of them, or one of a megabyte. */
export function someNames(names: readonly string[]): string {
  const shown = names
    .slice(0, mostNames)
    .map((name) => (name.length > mostLetters ? `${name.slice(0, mostLetters)}…` : name))
    .join(", ");
  return names.length > mostNames ? `${shown} and ${names.length - mostNames} more` : shown || "nothing";
}
