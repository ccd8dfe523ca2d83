/** Texts as tokens, piece by piece or as one array in memory. For texts that do not fit there, ./terse data prepare writes files of tokens. */
import { createHash } from "node:crypto";
import { DataError } from "../data-error.ts";
import type { TextContext, Tokenizer } from "../dataset.ts";
import { documentFiles, documents, type Piece } from "../documents/documents.ts";
import type { Tokens } from "./token-source.ts";

export interface TokenPiece extends Omit<Piece, "text"> {
  readonly tokens: Iterable<number>;
}

/** What is encoded at once, on several threads where the tokenizer has them. */
const mostAhead = { pieces: 64, letters: 8 << 20 };

/** The tokens of the documents, one after the other, with endOfText between two. Throws `DataError`. */
export async function* textTokens(path: string, tokenizer: Tokenizer, column: string): AsyncGenerator<TokenPiece> {
  const ahead: { readonly piece: Promise<TokenPiece>; readonly length: number }[] = [];
  let letters = 0;
  const first = () => {
    const { piece, length } = ahead.shift()!;
    letters -= length;
    return piece;
  };
  let between = false;
  for await (const { text, before, after, ends, bytes } of inContext(documents(path, { column }))) {
    if (between && tokenizer.endOfText !== undefined)
      ahead.push({ piece: Promise.resolve({ tokens: [tokenizer.endOfText], ends: false, bytes: 0 }), length: 0 });
    between = ends;
    const piece = (async () => ({ tokens: await tokenizer.encode(text, { before, after }), ends, bytes }))();
    piece.catch(() => {}); // the turn of a piece that cannot be encoded may never come
    ahead.push({ piece, length: text.length });
    letters += text.length;
    while (ahead.length > mostAhead.pieces || letters > mostAhead.letters) yield await first();
  }
  while (ahead.length > 0) yield await first();
}

const contextLetters = 1 << 12;

/** The pieces, each with what its document has before and after it. */
async function* inContext(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece & TextContext> {
  let [before, held]: [string, Piece | undefined] = ["", undefined];
  for await (const piece of pieces) {
    if (held) {
      yield { ...held, before, after: piece.text.slice(0, contextLetters) };
      before = held.text.slice(-contextLetters);
    }
    held = piece.ends ? undefined : piece;
    if (!piece.ends) continue;
    yield { ...piece, before, after: "" };
    before = "";
  }
}

export interface Tokenized {
  readonly tokens: Tokens;
  readonly fingerprint: string;
  readonly remarks: readonly string[];
}

/** A line about texts that nothing separates; none where something does. `key` names a token. */
export function withoutEnd(texts: number, { endOfText }: Tokenizer, key: string): string[] {
  if (endOfText !== undefined || texts < 2) return [];
  return [
    `${texts} texts are joined with no token between them, because the tokenizer names no end of a text; ${key} names one`,
  ];
}

/** Throws `DataError`. */
export async function tokenized(path: string, tokenizer: Tokenizer, column: string): Promise<Tokenized> {
  const size = (await documentFiles(path)).reduce((sum, file) => sum + file.size, 0);
  const limit = process.availableMemory() * 0.4;
  if (size > limit)
    throw new DataError(
      `The text at ${path} has ${size} bytes, too many to be tokenized in memory; write tokens once with ./terse data prepare ${path}, and read those (data.name: tokens, or masked-text).`,
    );
  const growing = new GrowingTokens(tokenizer.vocabulary);
  let texts = 0;
  for await (const piece of textTokens(path, tokenizer, column)) {
    growing.push(piece.tokens);
    if (piece.ends) texts++;
  }
  const tokens = growing.take();
  const bytes = new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength);
  const fingerprint = createHash("sha256").update(bytes).digest("hex");
  return { tokens, fingerprint, remarks: withoutEnd(texts, tokenizer, "data.endOfText") };
}

/** Tokens of which the number is not known before. */
class GrowingTokens {
  #tokens: Tokens;
  #length = 0;

  constructor(vocabulary: number) {
    const Ids = vocabulary <= 256 ? Uint8Array : vocabulary <= 65536 ? Uint16Array : Uint32Array;
    this.#tokens = new Ids(1 << 16);
  }

  push(tokens: Iterable<number>): void {
    for (const token of tokens) {
      if (this.#length === this.#tokens.length) {
        const larger = new (this.#tokens.constructor as Uint16ArrayConstructor)(2 * this.#length);
        larger.set(this.#tokens);
        this.#tokens = larger;
      }
      this.#tokens[this.#length++] = token;
    }
  }

  /** All of them, in an array of their length. */
  take(): Tokens {
    return this.#tokens.slice(0, this.#length);
  }
}
