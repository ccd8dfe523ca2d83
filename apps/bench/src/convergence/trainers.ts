/** Processes that train side by side, one for each core: a small model does not use more than one. */
import { availableProcessors } from "@terse/native-loader";
import { Hosts } from "../hosts/hosts.ts";
import type { Run } from "./trainer.ts";
import { received, type Trained } from "./training.ts";

const program = new URL("./trainer.ts", import.meta.url);

export class Trainers implements AsyncDisposable {
  readonly #idle: Hosts[];
  readonly #all: readonly Hosts[];
  readonly #waiting: ((process: Hosts) => void)[] = [];

  private constructor(processes: readonly Hosts[]) {
    this.#all = processes;
    this.#idle = [...processes];
  }

  static async open(): Promise<Trainers> {
    const processes = Array.from({ length: availableProcessors() }, () => Hosts.open({ hosts: 1, program }));
    return new Trainers(await Promise.all(processes));
  }

  /** The run of one worker; all workers' losses are the same. */
  async train(run: Run): Promise<Trained> {
    const process = this.#idle.pop() ?? (await new Promise<Hosts>((free) => this.#waiting.push(free)));
    try {
      const [trained] = await process.ask<Trained>({ do: "train", ...run });
      return received(trained!);
    } finally {
      const next = this.#waiting.shift();
      if (next) next(process);
      else this.#idle.push(process);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#all.map((process) => process[Symbol.asyncDispose]()));
  }
}
