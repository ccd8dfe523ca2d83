/**
 * Weights & Biases or MLflow beside a run: a process of Python with their own client gets the run's numbers (track.py).
 * It reads them at once and sends them when it can, so the run never waits for it; where it fails, a line says so.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { closeSync, openSync } from "node:fs";
import { basename, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { readRegularText } from "@terse/checkpoint";
import type { Recipe } from "../recipe.ts";
import { type Line, namedNumbers } from "./numbers-of.ts";

const program = fileURLToPath(new URL("./track.py", import.meta.url));
/** How long a run that has ended waits for its tracker to send the rest, also one that has failed. */
const secondsAfterRun = { sound: 60, failed: 5 };

export const trackers = ["wandb", "mlflow"] as const;
type TrackerName = (typeof trackers)[number];

/** The file of a run with the ids under which it is tracked, so that a resumed run goes on there. track.py writes it. */
const trackFile = "track.json";

type Ids = { [Name in TrackerName]?: string };

/** The part of a run that a tracker needs. */
export interface TrackedRun {
  readonly folder: string;
  readonly recipe: Recipe;
}

/** What track.py tells. */
interface Told {
  readonly place?: string;
  readonly warning?: string;
}

export class Tracker implements Disposable {
  /** Resolves when its process has ended, or is left to itself. */
  readonly left: Promise<void>;
  readonly #name: TrackerName;
  readonly #child: ChildProcess;
  readonly #note: (text: string) => void;
  #warned = false;
  #isOver = false;
  #isOpen = false; // its client has answered
  readonly #leave: () => void;
  #code = 1; // of a run that dies

  /** `note` prints a line. Throws where its log cannot be written. */
  constructor(name: TrackerName, to: string, { folder, recipe }: TrackedRun, note: (text: string) => void) {
    this.#name = name;
    this.#note = (text) => {
      if (!this.#isOver) note(text);
    };
    const log = openSync(join(folder, `${name}.log`), "a");
    // In a session of its own, so that a Ctrl-C does not end it.
    this.#child = spawn(process.env["TERSE_PYTHON"] || "python3", [program], {
      stdio: ["pipe", "pipe", log],
      detached: true,
    });
    closeSync(log);
    const { promise, resolve } = Promise.withResolvers<void>();
    this.left = promise;
    this.#leave = resolve;
    this.#child.on("close", resolve);
    this.#child.on("error", (error) => this.#warn(`Python cannot be started: ${error.message}`));
    this.#child.on("exit", (code, signal) => {
      if (code !== 0)
        this.#warn(`its process has ended (${signal ?? `exit code ${code}`}); see ${name}.log of the run`);
    });
    this.#child.stdin!.on("error", () => {}); // it is gone, which its exit says
    createInterface({ input: this.#child.stdout! }).on("line", (line) => this.#heard(line));
    const { project, name: given } = recipe.track!;
    this.#send({
      tracker: name,
      to,
      folder,
      project,
      name: given ?? basename(folder),
      id: idsIn(folder)[name] ?? (name === "wandb" ? randomBytes(4).toString("hex") : null),
      config: recipe,
    });
  }

  /** Takes over the numbers of a line. */
  show(line: Line): void {
    const numbers = namedNumbers(line);
    if (numbers.length > 0) this.#send({ step: line.step, numbers: Object.fromEntries(numbers) });
  }

  /** The run ends with this exit code. Without a call it has died. */
  ended(code: number): void {
    this.#code = code;
  }

  /** The process goes on until it has sent the rest, and this one waits for it at its end; not for ever. */
  [Symbol.dispose](): void {
    this.#send({ code: this.#code });
    this.#child.stdin!.end();
    if (this.#hasEnded) return;
    const seconds = this.#warned || !this.#isOpen ? secondsAfterRun.failed : secondsAfterRun.sound;
    const giveUp = () => {
      this.#note(`track.${this.#name}: its process has not sent everything within ${seconds} s, and goes on by itself`);
      this.#isOver = true;
      this.#child.stdout!.destroy();
      this.#child.unref();
      this.#leave();
    };
    const timer = setTimeout(giveUp, 1000 * seconds);
    timer.unref();
    this.#child.once("exit", () => clearTimeout(timer));
  }

  get #hasEnded(): boolean {
    return this.#child.exitCode !== null || this.#child.signalCode !== null;
  }

  #send(message: object): void {
    const stdin = this.#child.stdin!;
    if (stdin.writable && !this.#hasEnded) stdin.write(`${JSON.stringify(message)}\n`);
  }

  #heard(line: string): void {
    let told: Told;
    try {
      told = JSON.parse(line) as Told;
    } catch {
      return; // a client has printed something
    }
    this.#isOpen ||= told.place !== undefined;
    if (told.place !== undefined) this.#note(`tracked by ${this.#name}: ${told.place}`);
    if (told.warning !== undefined) this.#warn(told.warning);
  }

  /** One line for a run: what fails once fails again. */
  #warn(why: string): void {
    if (this.#warned) return;
    this.#warned = true;
    this.#note(`track.${this.#name}: ${why}; the run goes on`);
  }
}

function idsIn(folder: string): Ids {
  try {
    const ids = JSON.parse(readRegularText(join(folder, trackFile), 1 << 20)) as Ids | null;
    return typeof ids === "object" && ids !== null ? ids : {};
  } catch {
    return {}; // a new run has none
  }
}
