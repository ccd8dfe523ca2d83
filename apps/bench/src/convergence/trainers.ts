/** Processes that train side by side, one for each core: a small model does not use more than one. */
import { availableProcessors } from "@terse/native-loader";
import { Hosts } from "../hosts/hosts.ts";
import { keptRun } from "../kept-runs.ts";
import type { Run } from "./trainer.ts";
import { received, type Trained } from "./training.ts";

const program = new URL("./trainer.ts", import.meta.url);

export class Trainers implements AsyncDisposable {
  readonly #idle: Hosts[];
  readonly #all: readonly Hosts[];
  readonly #waiting: ((process: Hosts) => void)[] = [];

  readonly #setting: string | undefined;

  private constructor(processes: readonly Hosts[], setting: string | undefined) {
    this.#setting = setting;
    this.#all = processes;
    this.#idle = [...processes];
  }

  /** `setting`: for which finished runs are kept (kept-runs.ts), such as "convergence/adamw"; without it none are. */
  static async open(setting?: string): Promise<Trainers> {
    const processes = Array.from({ length: availableProcessors() }, () => Hosts.open({ hosts: 1, program }));
    return new Trainers(await Promise.all(processes), setting);
  }

  /** The run of one worker; all workers' losses are the same. */
  train(run: Run): Promise<Trained> {
    return keptRun(this.#setting, run, () => this.#train(run));
  }

  async #train(run: Run): Promise<Trained> {
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
