/** Renders rows by a chat template, in a process of its own (render-process.ts) with limits of time and memory. */
import type { ChildProcess } from "node:child_process";
import { DataError } from "../data-error.ts";
import { forkLimited, memoryWasFull } from "../limited-process.ts";
import { programBeside } from "../program-beside.ts";
import type { ChatTemplate } from "./chat-template.ts";
import type { Rendering } from "./render-chat.ts";
import type { RenderAnswer, RenderMessage, RenderRequest } from "./render-process.ts";

const program = programBeside(import.meta.url, "render-process");

const mostMegabytes = 512;
const othersMegabytes = 1024; // V8's own, and what it holds outside of its heap

export interface RendererOptions {
  readonly date?: string | undefined; // YYYY-MM-DD
  readonly limit?: number; // seconds that a row may take
}

export class Renderer {
  readonly #source: string;
  readonly #limit: number;
  readonly #child: ChildProcess;
  #last: Promise<unknown> = Promise.resolve();
  #ended: string | undefined; // why

  constructor({ source, text, special }: ChatTemplate, { date, limit = 30 }: RendererOptions = {}) {
    this.#source = source;
    this.#limit = limit;
    this.#child = forkLimited(program, {
      megabytes: mostMegabytes + othersMegabytes,
      serialization: "advanced",
      stdio: ["ignore", "ignore", "ignore", "ipc"],
      env: {
        ...process.env,
        NODE_OPTIONS: `${process.env["NODE_OPTIONS"] ?? ""} --max-old-space-size=${mostMegabytes}`,
      },
    });
    this.#child.on("error", ({ message }) => this.#end(`its process did not start: ${message}`));
    this.#child.on("exit", (code, signal) =>
      this.#end(
        memoryWasFull(signal)
          ? `it needs more than ${mostMegabytes} MB of memory`
          : `its process ended with ${signal ?? `code ${code}`}`,
      ),
    );
    this.#child.send({ template: text, special, date } satisfies RenderMessage, () => {});
    this.#wait(false);
  }

  /** Renders beginnings of a row; `where` names it in messages. One call after the other. Throws `DataError`. */
  render(request: RenderRequest, where: string): Promise<readonly Rendering[]> {
    const answer = this.#last.then(() => this.#render(request, where));
    this.#last = answer.catch(() => {});
    return answer;
  }

  close(): void {
    this.#ended ??= "it has ended";
    this.#child.kill("SIGKILL");
  }

  async #render(request: RenderRequest, where: string): Promise<readonly Rendering[]> {
    const answer = await this.#ask(request);
    if ("rendered" in answer) return answer.rendered;
    const words = answer.problem.replaceAll(/\s+/g, " ").replace(/\.$/, "");
    const remedy = answer.ofTemplate
      ? "correct the template, or name another one"
      : "correct the row, or name another template";
    throw new DataError(`${where}: the chat template ${this.#source} fails: ${words}; ${remedy} with data.template.`);
  }

  #ask(request: RenderRequest): Promise<RenderAnswer> {
    if (this.#ended !== undefined) return Promise.resolve({ problem: this.#ended });
    const answered = Promise.withResolvers<RenderAnswer>();
    const onExit = () => answered.resolve({ problem: this.#ended! });
    const timer = setTimeout(() => {
      this.#end(`it had not ended after ${this.#limit} seconds`);
      this.#child.kill("SIGKILL");
      onExit();
    }, 1000 * this.#limit);
    this.#wait(true);
    this.#child.once("message", answered.resolve).once("exit", onExit).once("error", onExit);
    this.#child.send(request, () => {});
    return answered.promise.finally(() => {
      clearTimeout(timer);
      this.#child.off("message", answered.resolve).off("exit", onExit).off("error", onExit);
      this.#wait(false);
    });
  }

  #end(reason: string): void {
    this.#ended ??= reason;
  }

  /** While a row waits, the process keeps Node alive. */
  #wait(waits: boolean): void {
    for (const handle of [this.#child, this.#child.channel]) waits ? handle?.ref() : handle?.unref();
  }
}
