/**
 * A process that measures the software we are compared with, mostly in Python. It reads one request a line and answers
 * with JSON.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const rest = 50; // ms

export class Peer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #errors = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    const failed = (error: Error) => {
      this.#errors += error.message;
    };
    child.on("error", failed);
    child.stdin!.on("error", failed); // it has ended; the next answer reports that
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    child.stderr!.on("data", (text: Buffer) => {
      this.#errors = (this.#errors + text.toString()).slice(-2000);
    });
  }

  /**
   * Starts peers/<script> and waits until it is ready. Throws, and says what to do, if there is no Python with torch.
   */
  static async start(script: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Peer> {
    const python = process.env["TERSE_PYTHON"];
    if (!python || !existsSync(python))
      throw new Error("no Python with torch for the peers: run `./terse test` once, or set TERSE_PYTHON");
    const file = fileURLToPath(new URL(`../peers/${script}`, import.meta.url));
    return Peer.startProgram([python, file, ...args], env);
  }

  /** Starts a program that speaks this protocol, and waits until it is ready. */
  static async startProgram([program, ...args]: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Peer> {
    const peer = new Peer(spawn(program!, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] }));
    await peer.#answer();
    return peer;
  }

  /**
   * Asks when our threads have come to rest, and gives the answer when the peer's have: GNU's OpenMP lets its threads
   * spin for some 15 ms after their last work, which would slow down the side that comes next.
   */
  async askAtRest<Answer>(request: string): Promise<Answer> {
    await setTimeout(rest);
    const answer = await this.ask<Answer>(request);
    await setTimeout(rest);
    return answer;
  }

  async ask<Answer>(request: string): Promise<Answer> {
    this.#child.stdin!.write(`${request}\n`);
    return (await this.#answer()) as Answer;
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the peer ended: ${this.#errors.trim().split("\n").at(-1) || "it printed no error"}`);
    return JSON.parse(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin!.end();
    this.#child.kill();
  }
}
