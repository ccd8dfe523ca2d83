import { printable } from "@terse/options";

const mostCharacters = 8000;

/** A text of another process, for an error: printable, and bounded in length. */
export function textOfPeer(text: string, most = mostCharacters): string {
  const kept = printable(text.slice(0, most).toWellFormed());
  return text.length > most ? `${kept} … (${text.length - most} characters more)` : kept;
}
