/** The tokens of a row, and which of them are learned: as TRL's SFTTrainer prepares rows. */
import { DataError } from "../data-error.ts";
import { checkLetters } from "../documents/text-of-row.ts";
import type { Continuation, Conversation } from "./chat-rows.ts";
import { mostLetters, type Rendering } from "./render-chat.ts";
import type { Beginning } from "./render-process.ts";
import type { Renderer } from "./renderer.ts";
import type { RowTokenizer } from "./row-tokenizer.ts";

export interface RowTokens {
  readonly ids: Uint32Array;
  /** 1 for each token that is learned, else 0. */
  readonly learned: Uint8Array;
  /** Answers that are not learned, because a template writes them in another way where more messages follow. */
  readonly lost?: number;
  /** Answers that are not learned, because a template does not write them. */
  readonly unwritten?: number;
}

export interface RowTokensOptions {
  readonly tokenizer: RowTokenizer;
  readonly loss: "answers" | "all";
  /** How many tokens of the row count: what is learned behind them need not be found. */
  readonly most: number;
  /** Renders conversations. Not asked for rows of texts. Throws `DataError` where there is no template. */
  template(): { readonly renderer: Renderer; readonly marksAnswers: boolean };
}

/** Throws `DataError`; `where` names the row. */
export async function rowTokens(
  row: Conversation | Continuation,
  { tokenizer, loss, most, template }: RowTokensOptions,
  where: string,
): Promise<RowTokens> {
  const encode = async (text: string, special = false) => (await tokenizer.encodeWhole(text, { special })).ids;
  if ("prompt" in row) {
    // Without a template, and with the tokens that the tokenizer puts around a text.
    const { prompt, completion } = row;
    const end = tokenizer.end?.content ?? "";
    const whole = prompt + (completion.endsWith(end) ? completion : completion + end);
    checkLetters(whole, where);
    if (whole.length > mostLetters)
      throw new DataError(
        `${where} has ${whole.length} letters, and a row has at most ${mostLetters}; divide it, or remove it.`,
      );
    const [before, ids] = await Promise.all([encode(prompt, true), encode(whole, true)]);
    return learning(ids, loss === "all" || completion === "" ? [] : [[commonLength(before, ids), ids.length]], loss);
  }
  const { messages, given, ...more } = row;
  if (messages.length === 0) return learning(new Uint32Array(), [], loss); // templates fail where there is no message
  const { renderer, marksAnswers } = template();
  const render = (beginnings: readonly Beginning[]) => renderer.render({ messages, ...more, beginnings }, where);
  const [whole] = (await render([{ count: messages.length, prompt: false }])) as [Rendering];
  checkLetters(whole.text, where);
  if (loss === "all" || (given === undefined && marksAnswers)) {
    const { ids, marked } = await tokenizer.encodeWhole(whole.text, { spans: loss === "all" ? [] : whole.answers });
    return loss === "all" ? learning(ids, [], loss) : { ids, learned: marked };
  }
  // An answer begins where its conversation differs from one that asks for it, and ends where it differs from one that
  // ends with it. Some templates write an answer without its thoughts once more messages follow: then it is what both
  // have of it at the end. What follows a prompt is the answer as a whole.
  const ids = await encode(whole.text);
  const turns = given === undefined ? answersIn(messages) : messages.length > given ? [[given, messages.length]] : [];
  const spans: [begin: number, end: number][] = [];
  let unwritten = 0;
  // A few turns at a time: each is rendered anew with all that is before it, and those behind `most` do not count.
  for (let at = 0; at < turns.length && (spans.at(-1)?.[0] ?? 0) < most; at += turnsAtOnce) {
    const some = turns.slice(at, at + turnsAtOnce);
    const texts = await render(
      some.flatMap(([from, to]) => [
        { count: from!, prompt: true },
        ...(to === messages.length ? [] : [{ count: to!, prompt: false }]), // where it ends the whole, that is known
      ]),
    );
    const rows = await Promise.all(texts.map(({ text }) => encode(text)));
    for (const i of some.keys()) {
      const [begin, end = ids] = rows.slice(2 * i) as [Uint32Array, Uint32Array?];
      const from = commonLength(begin, ids);
      unwritten += Number(commonLength(begin, end) === end.length);
      const alone = end.subarray(commonLength(begin, end)); // the answer where nothing follows
      spans.push([from, Math.max(commonLength(end, ids), from + endAtBeginning(alone, ids.subarray(from)))]);
    }
  }
  const found = spans.filter(([begin, end]) => begin < end);
  return { ...learning(ids, found, loss), lost: spans.length - found.length - unwritten, unwritten };
}

const turnsAtOnce = 8;

/** The places of the assistant's messages, from … to. */
const answersIn = (messages: Conversation["messages"]) =>
  messages.flatMap(({ role }, i) => (role === "assistant" ? [[i, i + 1]] : []));

function learning(
  ids: Uint32Array,
  spans: readonly (readonly [begin: number, end: number])[],
  loss: RowTokensOptions["loss"],
): RowTokens {
  const learned = new Uint8Array(ids.length);
  if (loss === "all") learned.fill(1);
  for (const [begin, end] of spans) learned.fill(1, begin, end);
  return { ids, learned };
}

/** How many tokens two rows have in common at their beginning. */
function commonLength(a: Uint32Array, b: Uint32Array): number {
  let length = 0;
  while (length < a.length && length < b.length && a[length] === b[length]) length++;
  return length;
}

/** How many tokens at the end of a row are the beginning of another one: 0, or at least 2, because a newline may be. */
function endAtBeginning(row: Uint32Array, other: Uint32Array): number {
  for (let length = Math.min(row.length, other.length); length > 1; length--)
    if (commonLength(row.subarray(row.length - length), other) >= length) return length;
  return 0;
}
