/**
 * The program of a process that tokenizes with a tokenizer.json. The library is native code: a file that makes it
 * abort, or a pattern that takes for ever, ends this process and not the run.
 */
import type { Encoding, Tokenizer } from "tokenizers";
import { shortened } from "../data-error.ts";
import type { TextContext } from "../dataset.ts";
import { encodeInWindows } from "./encode-in-windows.ts";

export interface WholeOptions {
  readonly special?: boolean;
  readonly spans?: readonly (readonly [begin: number, end: number])[];
}

export interface MarkedTokens {
  readonly ids: Uint32Array;
  readonly marked: Uint8Array; // 1 for each token in a span, else 0
}

export type Request = { readonly id: number } & (
  | { readonly json: string; readonly added: readonly (readonly [content: string, id: number])[] }
  | ({ readonly encode: string } & Partial<TextContext>)
  | ({ readonly whole: string } & Required<WholeOptions>)
  | { readonly decode: readonly number[]; readonly special?: boolean }
);

export type Answer = { readonly id: number } & (
  | { readonly ids: Uint32Array; readonly marked?: Uint8Array }
  | { readonly text: string }
  | { readonly problem: string }
);

let tokenizer: Tokenizer;

/** Loads the tokenizer. Throws what the library says of a file that is no tokenizer. */
async function load(json: string, added: readonly (readonly [content: string, id: number])[]): Promise<void> {
  const library = await import("tokenizers").catch((error: Error) => {
    throw new Error(`its library does not run on this machine (${process.platform} ${process.arch}): ${error.message}`);
  });
  tokenizer = library.Tokenizer.fromString(json);
  // Truncation and padding would change a text's tokens; rows get their length elsewhere.
  tokenizer.disableTruncation();
  tokenizer.disablePadding();
  for (const [content, id] of added) {
    const there = tokenizer.tokenToId(content);
    if (there !== id)
      throw new Error(
        `the added token ${JSON.stringify(content)} has id ${id}, but Hugging Face's tokenizers give it ${there}: added ids begin behind the vocabulary, without holes`,
      );
  }
}

const encodeWindow = (text: string): Promise<Encoding> => tokenizer.encode(text, null, { addSpecialTokens: false });

/** The tokens of a text, and which of them are in its spans, as transformers' apply_chat_template marks them. */
async function encodeWhole(text: string, { special, spans }: Required<WholeOptions>) {
  const encoding = await tokenizer.encode(text, null, { addSpecialTokens: special });
  const ids = Uint32Array.from(encoding.getIds());
  const marked = new Uint8Array(ids.length);
  let [place, letters] = [0, 0]; // the library counts code points
  const letterAt = (unit: number) => {
    for (; place < unit; letters++) place += text.codePointAt(place)! > 0xffff ? 2 : 1;
    return letters;
  };
  for (const [begin, end] of spans) {
    const first = encoding.charToToken(letterAt(begin));
    if (first === null) break;
    const last = encoding.charToToken(letterAt(end) - 1);
    marked.fill(1, first, last ? last + 1 : ids.length);
  }
  return { ids, marked };
}

async function answerTo(request: Request): Promise<Answer> {
  const { id } = request;
  if ("encode" in request) return { id, ids: await encodeInWindows(request.encode, encodeWindow, request) };
  if ("whole" in request) return { id, ...(await encodeWhole(request.whole, request)) };
  if ("decode" in request) return { id, text: await tokenizer.decode([...request.decode], !request.special) };
  await load(request.json, request.added);
  return { id, text: "" };
}

process.on("message", async (request: Request) => {
  const answer = await answerTo(request).catch((error: Error) => ({
    id: request.id,
    problem: shortened(error.message),
  }));
  process.send!(answer);
});
// An interrupt ends the run, and the run ends this process. Until then it may still need the texts that it has asked
// for.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
// A normal exit would wait for the library's threads, and one of them may never end.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
