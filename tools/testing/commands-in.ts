/** A line of shell in a document; a backslash at a line's end joins it with the next. */
export interface ShellLine {
  line: number; // in the document, from 1 on; the last one where several are joined
  text: string;
}

/** A command in a document. */
export interface Command {
  line: number; // in the document, from 1 on
  words: string[]; // as a shell splits them, without what follows # or | or &&
}

/** The lines in the blocks of a Markdown text that are marked `sh` or `bash`; without comments and empty lines. */
export function shellLinesIn(markdown: string): ShellLine[] {
  return [...markdown.matchAll(/^ *```(?:sh|bash)\n([\s\S]*?)^ *```/gm)].flatMap(({ 1: block, index }) => {
    const first = markdown.slice(0, index).split("\n").length + 1;
    const lines: ShellLine[] = [];
    let joined = "";
    for (const [i, line] of block!.split("\n").entries()) {
      joined += line.replace(/\\$/, " ");
      if (line.endsWith("\\")) continue;
      const text = joined
        .replace(/(^|\s)#.*/, "")
        .replaceAll(/\s+/g, " ")
        .trim();
      if (text !== "") lines.push({ line: first + i, text });
      joined = "";
    }
    return lines;
  });
}

/** The commands in these lines. */
export const commandsIn = (markdown: string): Command[] =>
  shellLinesIn(markdown).flatMap(({ line, text }) => commandsOf(text).map((words) => ({ line, words })));

/** The commands of one line, as words without their quotes. */
export function commandsOf(line: string): string[][] {
  const commands: string[][] = [[]];
  let word: string | undefined;
  const end = () => {
    if (word !== undefined) commands.at(-1)!.push(word);
    word = undefined;
  };
  for (const [token] of line.matchAll(/"(?:\\.|[^"])*"|'[^']*'|\s+|&&|\|\||[|;&<>]|#.*|[^\s"'|;&<>]+/g)) {
    if (/^\s/.test(token)) end();
    else if (token.startsWith("#") && word === undefined) break;
    else if (/^(&&|\|\||[|;&])$/.test(token)) {
      end();
      commands.push([]);
    } else word = (word ?? "") + (/^["']/.test(token) ? token.slice(1, -1) : token);
  }
  end();
  return commands.filter((words) => words.length > 0);
}
