const mostCharacters = 8000;

/**
 * A text of another process, for an error or a terminal: without control characters, which could move the cursor or hide a line, and
 * bounded in length. Newlines and tabs stay.
 */
export function printable(text: string, most = mostCharacters): string {
  const kept = text
    .slice(0, most)
    .toWellFormed()
    // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
    .replaceAll(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u2028-\u202e\u2066-\u2069]/g, "·");
  return text.length > most ? `${kept} … (${text.length - most} characters more)` : kept;
}
