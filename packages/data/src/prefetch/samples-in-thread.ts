/** Samples that a thread of their own reads, decodes and augments, so that the thread of training does not. */
import { Worker } from "node:worker_threads";
import { DataError } from "../data-error.ts";
import type { SampleOptions } from "../dataset.ts";
import { programBeside } from "../program-beside.ts";
import type { Arrays, Row, SampleFacts, Samples } from "../samples.ts";
import type { Answer, Request, ThreadData } from "./messages.ts";

const thread = programBeside(import.meta.url, "samples-thread");

interface Waiting {
  resolve(answer: Answer): void;
  reject(error: Error): void;
}

/** A thread and the requests that it has not answered. While there are any, it keeps Node alive. */
class Channel {
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #progress: SampleOptions["progress"];
  #last = 0;
  #ended: Error | undefined;

  constructor(data: ThreadData, progress: SampleOptions["progress"]) {
    this.#progress = progress;
    this.#worker = new Worker(thread, { workerData: data });
    this.#worker.on("message", (answer: Answer) => this.#settle(answer));
    this.#worker.on("error", (error: Error) => this.#end(error));
    this.#worker.on("exit", (code) => this.#end(new Error(`the thread that reads data ended with code ${code}`)));
  }

  /** The answer to the opening. */
  opened(): Promise<Answer> {
    return this.#wait(0);
  }

  ask(request: { training: readonly Row[] } | { validation: readonly number[] }): Promise<Answer> {
    const id = ++this.#last;
    const answer = this.#wait(id);
    if (this.#ended === undefined) this.#worker.postMessage({ id, ...request } satisfies Request);
    return answer;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  #wait(id: number): Promise<Answer> {
    if (this.#ended) return Promise.reject(this.#ended);
    this.#worker.ref();
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }));
  }

  #settle(answer: Answer): void {
    if ("progress" in answer) {
      this.#progress?.(answer.progress);
      return;
    }
    const { resolve, reject } = this.#waiting.get(answer.id)!;
    this.#waiting.delete(answer.id);
    if (this.#waiting.size === 0) this.#worker.unref();
    if ("problem" in answer) reject(answer.ofData ? new DataError(answer.problem) : new Error(answer.problem));
    else resolve(answer);
  }

  #end(error: Error): void {
    this.#ended ??= error;
    for (const { reject } of this.#waiting.values()) reject(this.#ended);
    this.#waiting.clear();
  }
}

export class SamplesInThread implements Samples {
  readonly facts: SampleFacts;
  readonly #channel: Channel;
  readonly #skipped: string[];

  private constructor(channel: Channel, facts: SampleFacts, skipped: readonly string[]) {
    this.#channel = channel;
    this.facts = facts;
    this.#skipped = [...skipped];
  }

  /** Opens samples by the name of their entry. Throws `DataError`. */
  static async open(name: string, options: object, { progress, ...given }: SampleOptions): Promise<SamplesInThread> {
    const channel = new Channel({ name, options, given }, progress);
    try {
      const { facts, skipped } = (await channel.opened()) as Extract<Answer, { facts: SampleFacts }>;
      return new SamplesInThread(channel, facts, skipped);
    } catch (error) {
      await channel.close();
      throw error;
    }
  }

  get skipped(): readonly string[] {
    return this.#skipped;
  }

  training(rows: readonly Row[]): Promise<Arrays> {
    return this.#batch(this.#channel.ask({ training: rows }));
  }

  validation(samples: readonly number[]): Promise<Arrays> {
    return this.#batch(this.#channel.ask({ validation: samples }));
  }

  async #batch(asked: Promise<Answer>): Promise<Arrays> {
    const { arrays, skipped } = (await asked) as Extract<Answer, { arrays: Arrays }>;
    for (const sample of skipped) this.#skipped.push(sample);
    return arrays;
  }

  async close(): Promise<void> {
    await this.#channel.close();
  }
}
