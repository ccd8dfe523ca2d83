import type { Conversation } from "./chat-rows.ts";
import { chatTemplate } from "./chat-template.ts";
import { Renderer } from "./renderer.ts";
import { openRowTokenizer, type RowTokenizer } from "./row-tokenizer.ts";

export interface ChatPrompt {
  readonly text: string; // that asks for an answer
  /** The tokens with which an answer ends: any of these. */
  readonly ends: readonly (readonly number[])[];
}

/** What a tokenizer's chat template makes of a user's message. Throws `DataError`. */
export async function chatPrompt(
  {
    tokenizer: name,
    template: named,
    date = new Date().toISOString().slice(0, 10),
  }: { tokenizer: string; template?: string | undefined; date?: string | undefined },
  message: string,
): Promise<ChatPrompt> {
  const tokenizer = await openRowTokenizer(name);
  const renderer = new Renderer(chatTemplate(name, named), { date });
  try {
    return await promptBy(renderer, tokenizer, { messages: [{ role: "user", content: message }] }, "The prompt");
  } finally {
    renderer.close();
  }
}

/** What asks for an answer to these messages. `where` names them in errors. Throws `DataError`. */
export async function promptBy(
  renderer: Renderer,
  tokenizer: RowTokenizer,
  { messages, ...more }: Pick<Conversation, "messages" | "tools" | "variables">,
  where: string,
): Promise<ChatPrompt> {
  const placeholder = crypto.randomUUID(); // a text that no template has
  const answered = [...messages, { role: "assistant", content: placeholder }];
  const beginnings = [
    { count: answered.length, prompt: false },
    { count: messages.length, prompt: true },
  ];
  const [whole, asking] = await renderer.render({ messages: answered, ...more, beginnings }, where);
  const [, behind = ""] = whole!.text.split(placeholder);
  const { ids } = await tokenizer.encodeWhole(behind.trim());
  const ending = tokenizer.added.has(ids[0]!) ? ids.subarray(0, 1) : ids;
  const ends = [[...ending], ...(tokenizer.end ? [[tokenizer.end.id]] : [])];
  return { text: asking!.text, ends: ends.filter((each) => each.length > 0) };
}
