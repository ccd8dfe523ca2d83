/** A process that measures what we are compared with, mostly in Python: one request a line. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

export class Peer implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  #words = "";

  private constructor(child: ChildProcess) {
    this.#child = child;
    const failed = (error: Error) => {
      this.#words += error.message;
    };
    child.on("error", failed);
    child.stdin!.on("error", failed); // it has ended; the next answer says so
    this.#lines = createInterface({ input: child.stdout! })[Symbol.asyncIterator]();
    child.stderr!.on("data", (text: Buffer) => {
      this.#words = (this.#words + text.toString()).slice(-2000);
    });
  }

  /** Starts peers/<script> and waits until it is ready. Throws, with the remedy, where there is no Python with torch. */
  static async start(script: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Peer> {
    const python = process.env["TERSE_PYTHON"];
    if (!python || !existsSync(python))
      throw new Error("no Python with torch for the peers: run `./terse test` once, or set TERSE_PYTHON");
    const file = fileURLToPath(new URL(`../peers/${script}`, import.meta.url));
    return Peer.startProgram([python, file, ...args], env);
  }

  /** Starts any program that answers so, and waits until it is ready. */
  static async startProgram([program, ...args]: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Peer> {
    const peer = new Peer(spawn(program!, args, { env: { ...process.env, ...env }, stdio: ["pipe", "pipe", "pipe"] }));
    await peer.#answer();
    return peer;
  }

  async ask<Answer>(request: string): Promise<Answer> {
    this.#child.stdin!.write(`${request}\n`);
    return (await this.#answer()) as Answer;
  }

  async #answer(): Promise<unknown> {
    const { value, done } = await this.#lines.next();
    if (done) throw new Error(`the peer ended: ${this.#words.trim().split("\n").at(-1) || "without a word"}`);
    return JSON.parse(value);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#child.stdin!.end();
    this.#child.kill();
  }
}
