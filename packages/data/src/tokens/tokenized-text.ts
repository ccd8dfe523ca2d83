/**
 * Texts as tokens, piece by piece or as one array in memory. For texts that do not fit there, ./terse data prepare
 * writes files of tokens.
 */
import { createHash } from "node:crypto";
import { basename, relative } from "node:path";
import { DataError } from "../data-error.ts";
import type { TextContext, Tokenizer } from "../dataset.ts";
import { documents } from "../documents/documents.ts";
import type { DocumentOptions, Piece } from "../documents/piece.ts";
import { SkippedRows } from "../documents/table.ts";
import { inTurn } from "../in-turn.ts";
import { type Inventory, withPassedOver } from "../inventory.ts";
import { type TextFile, textFiles } from "../text/text-files.ts";
import { largestInMemory } from "./largest-in-memory.ts";
import { type TokenSource, type Tokens, tokensInMemory } from "./token-source.ts";

export interface TokenPiece extends Omit<Piece, "text"> {
  readonly tokens: Iterable<number>;
}

/** The tokens of the documents, one after the other, with endOfText between two. Throws `DataError`. */
export async function* textTokens(
  files: readonly TextFile[],
  tokenizer: Tokenizer,
  options: DocumentOptions,
): AsyncGenerator<TokenPiece> {
  const encoded = async ({ text, before, after, ends, bytes }: Piece & TextContext): Promise<TokenPiece> => ({
    tokens: await tokenizer.encode(text, { before, after }),
    ends,
    bytes,
  });
  let between = false;
  for await (const piece of inTurn(inContext(documents(files, options)), encoded, ({ text }) => text.length)) {
    if (between && tokenizer.endOfText !== undefined) yield { tokens: [tokenizer.endOfText], ends: false, bytes: 0 };
    yield piece;
    between = piece.ends;
  }
}

const contextLetters = 1 << 12;

/** The pieces, each with what its document has before and after it. */
async function* inContext(pieces: AsyncIterable<Piece>): AsyncGenerator<Piece & TextContext> {
  let [before, unfinished]: [string, Piece | undefined] = ["", undefined];
  for await (const piece of pieces) {
    if (unfinished) {
      yield { ...unfinished, before, after: piece.text.slice(0, contextLetters) };
      before = unfinished.text.slice(-contextLetters);
    }
    unfinished = piece.ends ? undefined : piece;
    if (!piece.ends) continue;
    yield { ...piece, before, after: "" };
    before = "";
  }
}

/**
 * A line for the user, in a list, if no token separates several texts; else an empty list. `key`: the recipe's key that
 * names such a token.
 */
export function withoutEnd(texts: number, { endOfText }: Tokenizer, key: string): string[] {
  if (endOfText !== undefined || texts < 2) return [];
  return [
    `${texts} texts are joined with no token between them, because no token of the tokenizer is known to end one; ${key} names one`,
  ];
}

export interface TokenizedText {
  readonly training: TokenSource;
  /** The files that are held out by their names; absent where none is. */
  readonly heldOut: TokenSource | undefined;
  readonly fingerprint: string; // of both
  readonly inventory: Inventory;
  /** What the user should know, a line each. */
  readonly remarks: readonly string[];
}

/** The tokens of a path in memory. Throws `DataError`. */
export async function tokenizedText(path: string, tokenizer: Tokenizer, column?: string): Promise<TokenizedText> {
  const found = await textFiles(path, "texts", column);
  const passed = new SkippedRows();
  const limit = largestInMemory();
  let texts = 0;
  const tokenize = async (files: readonly TextFile[], beside: number) => {
    if (files.reduce((sum, { size }) => sum + size, beside) > limit) throw tooLarge(path, limit);
    const growing = new GrowingTokens(tokenizer.vocabulary);
    const options = { column: found.column!, passOver: passed.add };
    for await (const { tokens, ends } of textTokens(files, tokenizer, options)) {
      growing.push(tokens);
      if (ends) texts++;
      if (growing.bytes + beside > limit) throw tooLarge(path, limit); // packed files may grow without end
    }
    return growing.take();
  };
  const training = await tokenize(found.training, 0);
  const isHeldOut = found.heldOut.length > 0;
  const heldOut = isHeldOut ? await tokenize(found.heldOut, training.byteLength) : undefined;
  const words = passed.words((file) => relative(path, file) || basename(file));
  return {
    training: tokensInMemory(path, training),
    heldOut: heldOut && tokensInMemory(path, heldOut),
    fingerprint: [training, ...(heldOut ? [heldOut] : [])].map(digestOf).join(" "),
    inventory: withPassedOver(found.inventory, words),
    remarks: [...found.remarks, ...withoutEnd(texts, tokenizer, "data.endOfText")],
  };
}

const digestOf = (tokens: Tokens) =>
  createHash("sha256")
    .update(new Uint8Array(tokens.buffer, tokens.byteOffset, tokens.byteLength))
    .digest("hex");

const tooLarge = (path: string, limit: number) =>
  new DataError(
    `The text at ${path} is too large to be tokenized in memory, where ${Math.round(limit / 1e6)} MB may be used; write tokens once with ./terse data prepare ${path}, and read those (data.name: tokens, or masked-text).`,
  );

/** An array of tokens that grows, because their number is not known before. */
class GrowingTokens {
  #tokens: Tokens;
  #length = 0;

  constructor(vocabulary: number) {
    const Ids = vocabulary <= 256 ? Uint8Array : vocabulary <= 65536 ? Uint16Array : Uint32Array;
    this.#tokens = new Ids(1 << 16);
  }

  get bytes(): number {
    return this.#length * this.#tokens.BYTES_PER_ELEMENT;
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
