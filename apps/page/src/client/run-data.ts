/** A run as its metrics.jsonl tells it: columns by key, and each line's place on the axes of steps, time and bytes. */

export type By = "steps" | "seconds" | "bytes";

export interface State {
  readonly running: boolean;
  readonly age: number | undefined; // seconds, at `heard`
  readonly cut: boolean;
  readonly heard: number; // performance.now()
}

type Line = Readonly<Record<string, unknown>> & { readonly step: number };

/** Values of a key by the number of steps taken before them. */
export interface Column {
  readonly steps: number[];
  readonly values: number[];
}

export class RunData {
  readonly name: string;
  readonly recipe: Readonly<Record<string, unknown>> | undefined;
  readonly problems: readonly string[];
  state: State | undefined;
  /** The last value of each key that is no number. */
  readonly last = new Map<string, unknown>();
  #columns = new Map<string, Column>();
  /** After each training line: steps, seconds and bytes since the beginning. */
  #positions = { steps: [0], seconds: [0], bytes: [0] };
  #unreadable = 0;
  #stoppedAfter = 0; // steps

  constructor({ name, recipe, problems }: { name: string; recipe?: Record<string, unknown>; problems: string[] }) {
    this.name = name;
    this.recipe = recipe;
    this.problems = problems;
  }

  get columns(): ReadonlyMap<string, Column> {
    return this.#columns;
  }

  /** Steps taken, as the last line of training says, or the line of the run's end. */
  get steps(): number {
    return Math.max(this.#positions.steps.at(-1)!, this.stopped === undefined ? 0 : this.#stoppedAfter);
  }

  /** The steps of the whole run; undefined where the recipe does not say. */
  get stepsToTake(): number | undefined {
    const steps = this.recipe?.["steps"];
    return typeof steps === "number" ? steps : undefined;
  }

  get unreadable(): number {
    return this.#unreadable;
  }

  /** What has ended the run before its last step, where no line of training came after it. */
  get stopped(): string | undefined {
    const stopped = this.last.get("stopped");
    return typeof stopped === "string" ? stopped : undefined;
  }

  forget(): void {
    this.#columns = new Map();
    this.#positions = { steps: [0], seconds: [0], bytes: [0] };
    this.#unreadable = 0;
    this.last.clear();
  }

  add(text: string): void {
    const line = parse(text);
    if (line === undefined) {
      this.#unreadable++;
      return;
    }
    const isTraining = typeof line["train/loss"] === "number";
    const steps = isTraining ? line.step + 1 : line.step;
    if (isTraining) {
      this.#advance(line, steps);
      this.last.delete("stopped"); // it went on
    }
    if (line["stopped"] !== undefined) this.#stoppedAfter = line.step;
    for (const [key, value] of Object.entries(line)) {
      if (key === "step") continue;
      if (typeof value !== "number") {
        this.last.set(key, value);
        continue;
      }
      const column = this.#columns.get(key) ?? { steps: [], values: [] };
      this.#columns.set(key, column);
      column.steps.push(steps);
      column.values.push(value);
    }
  }

  /** Where it is on an axis after so many steps; between two lines on the straight line. */
  at(steps: number, by: By): number {
    if (by === "steps") return steps;
    const { steps: known, [by]: along } = this.#positions;
    const i = lowerBound(known, steps);
    if (i >= known.length) return along.at(-1)!;
    if (i === 0 || known[i] === steps) return along[i]!;
    const share = (steps - known[i - 1]!) / (known[i]! - known[i - 1]!);
    return along[i - 1]! + share * (along[i]! - along[i - 1]!);
  }

  lastOf(key: string): number | undefined {
    return this.#columns.get(key)?.values.at(-1);
  }

  listOf(key: string): number[] | undefined {
    const value = this.last.get(key);
    return Array.isArray(value) && value.every((each) => typeof each === "number") ? value : undefined;
  }

  /** The numbers of a list by the names of its places, which for `layers/ties` are `layers/names`. */
  namedOf(key: string): ReadonlyMap<string, number> | undefined {
    const [names, values] = [this.last.get(key.replace(/[^/]*$/, "names")), this.last.get(key)];
    if (!Array.isArray(names) || !Array.isArray(values) || names.length !== values.length) return undefined;
    return new Map(
      names.flatMap((name, i) => (typeof values[i] === "number" ? [[String(name), values[i]] as const] : [])),
    );
  }

  /** Lines of a run that was written before sums were are summed here. */
  #advance(line: Line, steps: number): void {
    const { steps: known, seconds, bytes } = this.#positions;
    const taken = steps - known.at(-1)!;
    known.push(steps);
    seconds.push(number(line["elapsed_seconds"]) ?? seconds.at(-1)! + taken * (number(line["step_seconds"]) ?? 0));
    bytes.push(number(line["total_bytes"]) ?? bytes.at(-1)! + taken * (number(line["sent_bytes"]) ?? 0));
  }
}

const number = (value: unknown) => (typeof value === "number" ? value : undefined);

function parse(text: string): Line | undefined {
  try {
    const line = JSON.parse(text) as Line | null;
    return typeof line?.step === "number" ? line : undefined;
  } catch {
    return undefined;
  }
}

/** The first index whose value is not below `wanted`. */
export function lowerBound(sorted: readonly number[], wanted: number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle]! < wanted) low = middle + 1;
    else high = middle;
  }
  return low;
}
