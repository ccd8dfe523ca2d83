/** The forms of rows for fine-tuning: those of TRL's datasets, ShareGPT's, and Alpaca's. */
import { DataError } from "../data-error.ts";
import { exactJson } from "../documents/read-json.ts";
import { someNames } from "../documents/some-names.ts";
import { isObject, kindOf, type Values } from "../documents/text-of-row.ts";
import type { RowKeys } from "./chat-options.ts";
import type { Message } from "./render-chat.ts";

/** A conversation. What follows its first `given` messages is the answer; undefined: what the assistant says. */
export interface Conversation {
  readonly messages: readonly Message[];
  readonly given?: number | undefined;
  readonly tools?: unknown;
  /** What the row gives its template by name, such as enable_thinking. */
  readonly variables?: Values;
}

/** A text, and the text that is to follow it. */
export interface Continuation {
  readonly prompt: string;
  readonly completion: string;
}

export interface RowForm {
  /** In words, for a line about the data. */
  readonly name: string;
  /** Throws `DataError` for a row of another form; `where` names the row. */
  read(row: unknown, where: string): Conversation | Continuation;
}

/** The forms, each with the keys that name what a row has. */
const forms = [["messages"], ["prompt", "completion"], ["instruction", "input", "output"]] as const;

/** Keys of ShareGPT's and Alpaca's rows with a part of the conversation that is not read. */
const columnsBeside = ["system", "history"] as const;

/** The keys of a row with a part of the conversation that is not read. */
export const unreadIn = (row: unknown, keys: RowKeys): string[] =>
  columnsBeside.filter((key) => {
    const value = isObject(row) && !Object.values(keys).includes(key) ? row[key] : undefined;
    return (typeof value === "string" || Array.isArray(value)) && value.length > 0;
  });

/** Keys of messages by which OpenAI's and axolotl's rows say that an answer is not to be learned, and how they say it. */
const marksOfMessages: Readonly<Record<string, (value: unknown) => boolean>> = {
  weight: (value) => value !== null && Number(value) === 0,
  train: (value) => value === false,
};

/** The keys of a conversation's answers that are not read, and ask that the answer be not learned. */
export const unreadInAnswers = (row: Conversation | Continuation): string[] =>
  "prompt" in row || row.given !== undefined
    ? []
    : Object.keys(marksOfMessages).filter((key) =>
        row.messages.some((each) => each.role === "assistant" && key in each && marksOfMessages[key]!(each[key])),
      );

/** Every key that a row may have its content in. */
export const columnsOfRows = (keys: RowKeys): string[] => [
  ...new Set([
    "conversations",
    "tools",
    "chat_template_kwargs",
    ...columnsBeside,
    ...forms.flat().flatMap((key) => [key, keys[key] ?? key]),
  ]),
];

/** The form of rows: the one whose keys are given, else that of the first row. Throws `DataError`. */
export function rowForm(given: RowKeys, first: unknown, where: string): RowForm {
  const row = objectIn(first, where);
  const has = (...names: readonly string[]) => names.every((name) => Object.hasOwn(row, name));
  const { prompt = "prompt", completion = "completion", messages } = given;
  const { instruction = "instruction", input = "input", output = "output" } = given;
  const named = forms.map((keys) => keys.find((key) => given[key] !== undefined));
  const [one, other] = named.filter((key) => key !== undefined);
  if (other !== undefined)
    throw new DataError(
      `data.${one} and data.${other} belong to different forms of rows; give data.messages, or data.prompt and data.completion, or data.instruction, data.input and data.output.`,
    );
  if (messages !== undefined) return ofMessages(messages);
  if (named[1]) return ofPrompts(prompt, completion);
  if (named[2]) return ofInstructions({ instruction, input, output });
  if (has("messages")) return ofMessages("messages");
  if (has("conversations")) return ofMessages("conversations");
  if (has(prompt, completion)) return ofPrompts(prompt, completion);
  if (has(instruction, output)) return ofInstructions({ instruction, input, output });
  throw new DataError(
    `${where} has no known form, only ${someNames(Object.keys(row))}: rows have messages, conversations, prompt and completion, or instruction, input and output; name their keys, such as data.prompt and data.completion, or data.instruction and data.output. Texts alone are read with data.name: text.`,
  );
}

function ofMessages(key: string): RowForm {
  return {
    name: key,
    read(row, where) {
      const values = objectIn(row, where);
      return { messages: messagesIn(values[key], key, where), ...forTemplate(values, where) };
    },
  };
}

function ofPrompts(prompt: string, completion: string): RowForm {
  return {
    name: `${prompt} and ${completion}`,
    read(row, where) {
      const values = objectIn(row, where);
      const { [prompt]: before, [completion]: after } = values;
      if (typeof before === "string" && typeof after === "string") return { prompt: before, completion: after };
      if (typeof before === "string" || typeof after === "string")
        throw new DataError(
          `${where} has ${kindOf(before)} in ${prompt} and ${kindOf(after)} in ${completion}; both are texts, or both lists of messages.`,
        );
      const given = messagesIn(before, prompt, where);
      return {
        messages: [...given, ...messagesIn(after, completion, where)],
        given: given.length,
        ...forTemplate(values, where),
      };
    },
  };
}

function ofInstructions(names: { instruction: string; input: string; output: string }): RowForm {
  const { instruction, input, output } = names;
  return {
    name: `${instruction} and ${output}`,
    read(row, where) {
      const values = objectIn(row, where);
      const asked = textIn(values, instruction, where);
      const beside = values[input] === undefined || values[input] === null ? "" : textIn(values, input, where);
      const content = beside === "" ? asked : `${asked}\n\n${beside}`;
      return {
        messages: [
          { role: "user", content },
          { role: "assistant", content: textIn(values, output, where) },
        ],
      };
    },
  };
}

function objectIn(row: unknown, where: string): Values {
  if (isObject(row)) return row;
  throw new DataError(`${where} is ${kindOf(row)} and no object with keys; remove or correct it.`);
}

function textIn(row: Values, key: string, where: string): string {
  const value = row[key];
  if (typeof value === "string") return value;
  throw new DataError(
    `${where} has ${value === undefined ? `no ${key}, only ${someNames(Object.keys(row))}` : `${kindOf(value)} in ${key}, and no text`}; correct the row, or name another key (data.instruction, data.input, data.output).`,
  );
}

/** ShareGPT's names of roles. */
const roles: Readonly<Record<string, string>> = { human: "user", gpt: "assistant" };

function messagesIn(value: unknown, key: string, where: string): Message[] {
  if (!Array.isArray(value))
    throw new DataError(
      `${where} has ${value === undefined ? "nothing" : kindOf(value)} in ${key}, and no list of messages; correct the row, or name another key with data.messages.`,
    );
  return value.map((given: unknown, i) => {
    const each: unknown = given instanceof Map ? Object.fromEntries(given) : given; // read-json.ts
    const place = `${where}, message ${i + 1} of ${key}`;
    if (!isObject(each))
      throw new DataError(`${place} is ${kindOf(each)} and no object with role and content; correct it.`);
    const { from, value, ...others } = each;
    const isShareGpt = typeof from === "string" && others["role"] === undefined;
    const message: Message = isShareGpt ? { role: roles[from] ?? from, content: value, ...others } : each;
    if (typeof message["role"] !== "string")
      throw new DataError(`${place} has no role, only ${someNames(Object.keys(each))}; correct it.`);
    return { ...message, content: contentIn(message["content"], place) };
  });
}

/** Texts as they are; a list of texts, as rows with pictures have it, as one. */
function contentIn(content: unknown, place: string): string | null {
  if (typeof content === "string") return content;
  if (content === undefined || content === null) return null; // a call of a tool has none
  if (!Array.isArray(content))
    throw new DataError(`${place} has ${kindOf(content)} as its content, and no text; correct it.`);
  return content
    .map((part: unknown) => {
      if (typeof part === "string") return part;
      if (isObject(part) && typeof part["text"] === "string") return part["text"];
      const what = isObject(part) && typeof part["type"] === "string" ? part["type"] : kindOf(part);
      throw new DataError(`${place} has ${someNames([what])} in its content, and only texts are read; remove the row.`);
    })
    .join("");
}

/** What a row gives its template besides the messages, as TRL's rows name it. */
function forTemplate(row: Values, where: string): Pick<Conversation, "tools" | "variables"> {
  const [tools, variables] = ["tools", "chat_template_kwargs"].map((key) => jsonIn(row, key, where));
  if (variables !== undefined && !isObject(variables))
    throw new DataError(
      `${where} has ${kindOf(variables)} in chat_template_kwargs, and no object with names of a template; correct it.`,
    );
  return { ...(tools !== undefined && { tools }), ...(variables && { variables }) };
}

/** A value, which may be a text of JSON; undefined where there is none. */
function jsonIn(row: Values, key: string, where: string): unknown {
  const value = row[key];
  if (value === null || value === "") return undefined;
  if (typeof value !== "string") return value;
  try {
    return exactJson(value);
  } catch (error) {
    throw new DataError(`${where} has ${key} that are no JSON: ${(error as Error).message}; correct it.`);
  }
}
