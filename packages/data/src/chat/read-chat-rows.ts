/** Reads rows for fine-tuning as tokens, and counts what is left out. */
import { DataError } from "../data-error.ts";
import { documentRows } from "../documents/documents.ts";
import type { DocumentRow } from "../documents/piece.ts";
import { someNames } from "../documents/some-names.ts";
import { lettersOf } from "../documents/text-of-row.ts";
import { inTurn } from "../in-turn.ts";
import type { TextFile } from "../text/text-files.ts";
import { largestInMemory } from "../tokens/largest-in-memory.ts";
import type { ChatRowOptions } from "./chat-options.ts";
import { type ChatPrompt, promptBy } from "./chat-prompt.ts";
import {
  type Continuation,
  type Conversation,
  columnsOfRows,
  type RowForm,
  rowForm,
  unreadIn,
  unreadInAnswers,
} from "./chat-rows.ts";
import { type ChatTemplate, chatTemplate } from "./chat-template.ts";
import { countText } from "./count-text.ts";
import type { RowCutter } from "./cut-rows.ts";
import { marksAnswers } from "./render-chat.ts";
import { Renderer } from "./renderer.ts";
import { openRowTokenizer, type RowTokenizer } from "./row-tokenizer.ts";
import { type RowTokens, rowTokens } from "./row-tokens.ts";
import { rowInMemory, type StoredRow } from "./stored-row.ts";

interface Read extends DocumentRow {
  readonly row: Conversation | Continuation;
}

interface OpenedTemplate extends ChatTemplate {
  readonly renderer: Renderer;
  readonly marksAnswers: boolean;
}

export class ChatRows implements AsyncDisposable {
  readonly #options: ChatRowOptions;
  readonly tokenizer: RowTokenizer;
  #form: RowForm | undefined;
  #template: OpenedTemplate | undefined;
  #first: Read | undefined;
  /** Rows that were left out, and answers that are not learned, by the reason. */
  readonly #roles = new Set<string>();
  readonly #unread = new Map<string, number>(); // rows by a key that is not read
  readonly #learnedAll = new Map<string, number>(); // rows by a key by which an answer asks not to be learned
  readonly #counts = { unanswered: 0, lost: 0, unwritten: 0, read: 0 };

  private constructor(options: ChatRowOptions, tokenizer: RowTokenizer) {
    this.#options = options;
    this.tokenizer = tokenizer;
  }

  /** Throws `DataError`. */
  static async open(options: ChatRowOptions): Promise<ChatRows> {
    return new ChatRows(options, await openRowTokenizer(options.tokenizer, options.endOfText));
  }

  /** The rows of files that have an answer. Answers behind `most` tokens are not looked for. Throws `DataError`. */
  async *read(files: readonly TextFile[], most: number): AsyncGenerator<RowTokens & { readonly bytes: number }> {
    const counts = this.#counts;
    for await (const row of inTurn(this.#rowsIn(files), this.#encode(most), lettersIn)) {
      counts.read++;
      counts.lost += row.lost ?? 0;
      counts.unwritten += row.unwritten ?? 0;
      if (row.learned.subarray(1).includes(1)) yield row;
      else counts.unanswered++;
    }
  }

  /** All rows of files, cut at `most` tokens, in memory. `progress` hears now and then how many. Throws `DataError`. */
  async readAll(
    files: readonly TextFile[],
    { most, cutter }: { most: number; cutter: RowCutter },
    progress: (words: string) => void = () => {},
  ): Promise<StoredRow[]> {
    const limit = largestInMemory();
    const rows: StoredRow[] = [];
    let [bytes, told] = [0, performance.now()];
    for await (const tokens of this.read(files, most)) {
      const cut = cutter.cut(rowInMemory(tokens), most)?.read();
      if (cut === undefined) continue;
      rows.push(rowInMemory({ ids: cut.ids.slice(), learned: cut.learned.slice() })); // without what is cut off
      bytes += 5 * cut.ids.length + bytesOfRow;
      if (performance.now() > told + 1000 * progressSeconds) {
        told = performance.now();
        progress(`${countText(rows.length, "row")} ${rows.length === 1 ? "is" : "are"} tokenized`);
      }
      if (bytes > limit)
        throw new DataError(
          `The rows at ${this.#options.path} have more than ${Math.round(limit / 1e6)} MB of tokens, too many for memory; give fewer files.`,
        );
    }
    return rows;
  }

  /** How the rows are read, a line each. */
  get remarks(): string[] {
    const { loss } = this.#options;
    const { lost, unwritten, read } = this.#counts;
    const notLearned = (count: number) =>
      `data: ${countText(count, "answer")} ${count === 1 ? "is" : "are"} not learned`;
    const of = `${countText(read, "row")} of ${this.#form?.name ?? "nothing"}`;
    const template = this.#template;
    const how =
      template === undefined
        ? `without a template${this.tokenizer.end === undefined ? ", and with no token that ends a text" : ""}`
        : `by the template ${template.source}`;
    const learned =
      loss === "all"
        ? "every token is learned"
        : template?.marksAnswers && !this.#isPrompted
          ? "the answers that it marks are learned"
          : "the answers are learned";
    return [
      `data: ${of} ${how}; ${learned}`,
      ...(template === undefined && this.#options.template !== undefined
        ? [
            "data.template changes nothing: a prompt and its completion that are texts have none; write them as messages",
          ]
        : []),
      ...(template?.source === "chatml" && ![...this.tokenizer.added.values()].includes("<|im_end|>")
        ? [`data: ${this.#options.tokenizer} has no tokens <|im_start|> and <|im_end|>, and writes each as several`]
        : []),
      ...(lost > 0
        ? [
            `${notLearned(lost)}, because the template writes ${lost === 1 ? "it" : "them"} in another way when more messages follow; a template with {% generation %} marks ${lost === 1 ? "it" : "them"}`,
          ]
        : []),
      ...(unwritten > 0
        ? [`${notLearned(unwritten)}, because the template does not write ${unwritten === 1 ? "it" : "them"}`]
        : []),
    ];
  }

  /** The error where no row has an answer. */
  noAnswers(): DataError {
    const { path } = this.#options;
    if (this.#counts.unwritten > 0)
      return new DataError(
        `${path} has answers, and the chat template ${this.#template!.source} writes none of them; name another template with data.template.`,
      );
    const roles =
      this.#roles.size === 0
        ? ""
        : `; the roles of messages are ${someNames([...this.#roles])}, and an answer's is assistant`;
    return new DataError(`${path} has no rows with an answer to train on${roles}.`);
  }

  /** What was left out, a few words each. */
  get passedOver(): string[] {
    const { unanswered } = this.#counts;
    return [
      ...(unanswered > 0 ? [`${countText(unanswered, "row")} without an answer`] : []),
      ...[...this.#unread].map(([key, rows]) => `${key} of ${countText(rows, "row")}: write it as messages`),
      ...[...this.#learnedAll].map(
        ([key, rows]) =>
          `${key} of answers in ${countText(rows, "row")}, which are learned all the same: put what is not to be learned into prompt, and the answer that is into completion`,
      ),
    ];
  }

  /** The template by which conversations were rendered; undefined where there were none. */
  get template(): ChatTemplate | undefined {
    return this.#template;
  }

  /** The first row up to its answer, as the model is to see it. Throws `DataError`. */
  async prompt(): Promise<Partial<ChatPrompt>> {
    if (this.#first === undefined) return {};
    const { row, where } = this.#first;
    if ("prompt" in row) {
      const { end } = this.tokenizer;
      return { text: row.prompt, ends: end ? [[end.id]] : [] };
    }
    const { messages, given, ...more } = row;
    const answer = given ?? messages.findIndex(({ role }) => role === "assistant");
    if (answer < 1) return {};
    return promptBy(this.#opened().renderer, this.tokenizer, { messages: messages.slice(0, answer), ...more }, where);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#template?.renderer.close();
  }

  async *#rowsIn(files: readonly TextFile[]): AsyncGenerator<Read> {
    for await (const each of documentRows(files, columnsOfRows(this.#options))) {
      this.#form ??= rowForm(this.#options, each.value, each.where);
      const read = { ...each, row: this.#form.read(each.value, each.where) };
      this.#first ??= read;
      for (const key of unreadIn(each.value, this.#options)) count(this.#unread, key);
      for (const key of unreadInAnswers(read.row)) count(this.#learnedAll, key);
      if ("messages" in read.row && this.#roles.size < mostRoles)
        for (const { role } of read.row.messages) this.#roles.add(role as string);
      yield read;
    }
  }

  #encode(most: number): (read: Read) => Promise<RowTokens & { readonly bytes: number }> {
    const { loss } = this.#options;
    const options = { tokenizer: this.tokenizer, loss, most, template: () => this.#opened() };
    return async ({ row, where, bytes }) => ({ ...(await rowTokens(row, options, where)), bytes });
  }

  #opened(): OpenedTemplate {
    if (this.#template === undefined) {
      const { tokenizer, template, date } = this.#options;
      const found = chatTemplate(tokenizer, template);
      this.#template = { ...found, renderer: new Renderer(found, { date }), marksAnswers: marksAnswers(found.text) };
    }
    return this.#template;
  }

  get #isPrompted(): boolean {
    return this.#first !== undefined && "messages" in this.#first.row && this.#first.row.given !== undefined;
  }
}

const count = (counts: Map<string, number>, key: string) => void counts.set(key, (counts.get(key) ?? 0) + 1);

const mostRoles = 8;
const progressSeconds = 10;
const bytesOfRow = 300; // of the objects that hold its tokens

/** About as many letters as a row has. */
const lettersIn = ({ value }: Read) => lettersOf(value);
