/** A tokenizer.json, opened by Hugging Face's own library in a process of its own (tokenizer-process.ts). */
import type { ChildProcess } from "node:child_process";
import { availableParallelism } from "node:os";
import { DataError, shortened } from "../data-error.ts";
import type { TextContext } from "../dataset.ts";
import { forkLimited, memoryWasFull } from "../limited-process.ts";
import { programBeside } from "../program-beside.ts";
import { remedyFor } from "./remedy-for.ts";
import type { Answer, MarkedTokens, Request, WholeOptions } from "./tokenizer-process.ts";

const program = programBeside(import.meta.url, "tokenizer-process");

/** How long the process may take for so many letters. On an idle machine it takes a second for a million. */
const limitSeconds = (letters: number) => 60 + letters / 10_000;

const idleSeconds = 10;

/**
 * Node takes 600 MB with its threads, a text 170 bytes a letter on each processor, a loaded file 25 times its bytes.
 */
const mostMegabytes = (json: string) => 1024 + 256 * availableParallelism() + 32 * Math.ceil(json.length / 2 ** 20);

export interface IsolatedOptions {
  readonly path: string; // for messages
  readonly json: string;
  readonly added: readonly (readonly [content: string, id: number])[];
  readonly limit?: (letters: number) => number; // in seconds
}

/** Starts its process with the first text. The process ends when it has had no text for a while. */
export class IsolatedTokenizer {
  readonly #options: IsolatedOptions;
  #running: { process: TokenizerProcess; loaded: Promise<unknown> } | undefined;

  constructor(options: IsolatedOptions) {
    this.#options = options;
  }

  /** Starts its process. Throws `DataError` if the library refuses the file. */
  async load(): Promise<void> {
    await this.#process();
  }

  /** The ids of a text's tokens. Throws `DataError`. */
  async encode(text: string, context: Partial<TextContext> = {}): Promise<Uint32Array> {
    const answer = await (await this.#process()).ask({ encode: text, ...context }, text);
    return (answer as { ids: Uint32Array }).ids;
  }

  /**
   * The ids of a text that is encoded at once; with `special`, those that the tokenizer puts around a text too.
   * `marked` says which tokens are in `spans` of the text, whose places are UTF-16 units. Throws `DataError`.
   */
  async encodeWhole(text: string, { special = false, spans = [] }: WholeOptions = {}): Promise<MarkedTokens> {
    const answer = await (await this.#process()).ask({ whole: text, special, spans }, text);
    const { ids, marked } = answer as MarkedTokens;
    return { ids, marked };
  }

  /** The text of tokens; with `special`, special tokens too. Throws `DataError`. */
  async decode(ids: readonly number[], { special = false } = {}): Promise<string> {
    const answer = await (await this.#process()).ask({ decode: ids, special }, `ids ${ids.slice(0, 8).join()}`);
    return (answer as { text: string }).text;
  }

  async #process(): Promise<TokenizerProcess> {
    if (this.#running === undefined || this.#running.process.ended) {
      const { json, added } = this.#options;
      const process = new TokenizerProcess(this.#options);
      this.#running = { process, loaded: process.ask({ json, added }, json) };
    }
    const { process, loaded } = this.#running;
    await loaded;
    return process;
  }
}

type Question = Request extends infer R ? (R extends Request ? Omit<R, "id"> : never) : never;

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
  readonly shown: string; // the text that it asks for
}

class TokenizerProcess {
  readonly #options: IsolatedOptions;
  readonly #child: ChildProcess;
  readonly #waiting = new Map<number, Waiting>();
  #last = 0;
  #errors = ""; // the end of what the process wrote to standard error
  #timer: NodeJS.Timeout | undefined;
  ended = false;

  constructor(options: IsolatedOptions) {
    this.#options = options;
    this.#child = forkLimited(program, {
      megabytes: mostMegabytes(options.json),
      serialization: "advanced",
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { UV_THREADPOOL_SIZE: String(availableParallelism()), ...process.env, RUST_BACKTRACE: "0" },
    });
    this.#child.on("message", (answer: Answer) => this.#settle(answer));
    this.#child.on("error", (error) => this.#end(`its process did not start: ${error.message}`));
    this.#child.on("close", (code, signal) => this.#end(this.#reasonOf(code, signal)));
    this.#child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.#errors = (this.#errors + text).slice(-4096);
    });
  }

  ask(question: Question, shown: string): Promise<Answer> {
    return new Promise((resolve, reject) => {
      if (this.ended) return reject(this.#refused("its process has ended"));
      const id = ++this.#last;
      this.#waiting.set(id, { resolve, reject, shown });
      // Where the process is gone already, its "close" gives the reason.
      this.#child.send({ ...question, id } as Request, () => {});
      this.#keepTime();
    });
  }

  #settle(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if ("problem" in answer) waiting?.reject(this.#refused(answer.problem));
    else waiting?.resolve(answer);
    this.#keepTime();
  }

  /** While texts wait, the process keeps Node alive, and has its time for them; afterwards it may stay for a while. */
  #keepTime(): void {
    clearTimeout(this.#timer);
    const waits = this.#waiting.size > 0;
    for (const handle of [this.#child, this.#child.channel, this.#child.stderr as unknown as NodeJS.RefCounted])
      waits ? handle?.ref() : handle?.unref();
    if (!waits) {
      this.#timer = setTimeout(() => this.#stop(), 1000 * idleSeconds).unref();
      return;
    }
    const letters = [...this.#waiting.values()].reduce((sum, { shown }) => sum + shown.length, 0);
    const seconds = (this.#options.limit ?? limitSeconds)(letters);
    this.#timer = setTimeout(() => {
      this.#end(`it had not ended after ${Math.round(seconds)} seconds`);
      this.#stop();
    }, 1000 * seconds);
  }

  #stop(): void {
    this.ended = true;
    this.#child.kill("SIGKILL");
  }

  #end(reason: string): void {
    this.ended = true;
    clearTimeout(this.#timer);
    if (this.#waiting.size === 0) return;
    const remedy = this.#remedyFor(reason);
    for (const { reject, shown } of this.#waiting.values()) reject(this.#refused(reason, shown, remedy));
    this.#waiting.clear();
  }

  /** The message of the Rust library's panic, or else how the process ended. */
  #reasonOf(code: number | null, signal: NodeJS.Signals | null): string {
    if (memoryWasFull(signal, this.#errors))
      return `it needs more than ${mostMegabytes(this.#options.json)} MB of memory`;
    const said = /panicked at [^\n]*\n(.*)/.exec(this.#errors)?.[1];
    return said ?? `its process ended with ${signal ?? `code ${code}`}`;
  }

  #remedyFor(reason: string): string {
    return remedyFor(reason, JSON.parse(this.#options.json));
  }

  #refused(reason: string, text?: string, remedy: string = this.#remedyFor(reason)): DataError {
    const { path, json } = this.#options;
    const begins = JSON.stringify(text?.slice(0, 40));
    const of = text === undefined || text === json ? "" : ` (of a text that begins with ${begins})`;
    return new DataError(`${path} cannot be used: ${shortened(reason)}${of}; ${remedy}.`);
  }
}
