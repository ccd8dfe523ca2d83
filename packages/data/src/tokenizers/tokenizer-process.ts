/**
 * The program of a process that tokenizes with a tokenizer.json. The library is native code: a file that makes it
 * abort, or a pattern that takes for ever, ends this process and not the run.
 */
import type { Encoding, Tokenizer } from "tokenizers";
import type { TextContext } from "../dataset.ts";
import { encodeInWindows } from "./encode-in-windows.ts";

export type Request = { readonly id: number } & (
  | { readonly json: string; readonly added: readonly (readonly [content: string, id: number])[] }
  | ({ readonly encode: string } & Partial<TextContext>)
  | { readonly decode: readonly number[] }
);

export type Answer = { readonly id: number } & (
  | { readonly ids: Uint32Array }
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

async function answerTo(request: Request): Promise<Answer> {
  const { id } = request;
  if ("encode" in request) return { id, ids: await encodeInWindows(request.encode, encodeWindow, request) };
  if ("decode" in request) return { id, text: await tokenizer.decode([...request.decode], true) };
  await load(request.json, request.added);
  return { id, text: "" };
}

process.on("message", async (request: Request) => {
  const answer = await answerTo(request).catch((error: Error) => ({ id: request.id, problem: error.message }));
  process.send!(answer);
});
// An interrupt ends the run, and the run ends this process. Until then it may still need the texts that it has asked
// for.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
// A normal exit would wait for the library's threads, and one of them may never end.
process.on("disconnect", () => process.kill(process.pid, "SIGKILL"));
