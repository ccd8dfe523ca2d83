/** Reads metrics.jsonl of a run. */
import { join } from "node:path";
import { CheckpointError, cannot, mayExist, openRegular, parsedJson } from "@terse/checkpoint";
import type { Line } from "../monitoring/numbers-of.ts";

const longestLine = 1 << 24; // bytes; what is longer is no line of metrics, and is not kept in memory

/**
 * The lines of a run's metrics.jsonl. What is no line of metrics is left out, such as a last line that was cut short;
 * `report` gets a sentence about it. Throws CheckpointError where there is no such file.
 */
export async function readMetrics(run: string, report: (problem: string) => void = () => {}): Promise<Line[]> {
  const file = join(run, "metrics.jsonl");
  if (!mayExist(file))
    throw new CheckpointError(`${run} has no metrics.jsonl: name the folder of a run, such as runs/NAME-TIME`);
  const found = new Metrics();
  try {
    await using handle = await openRegular(file);
    let begun: Buffer[] = []; // a line without its end
    let length = 0;
    const add = (bytes: Buffer) => {
      length += bytes.length;
      if (length <= longestLine) begun.push(bytes);
      else begun = [];
    };
    const end = () => {
      found.add(length <= longestLine ? Buffer.concat(begun).toString() : undefined);
      [begun, length] = [[], 0];
    };
    for (;;) {
      const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(1 << 16));
      if (bytesRead === 0) break;
      const chunk = buffer.subarray(0, bytesRead);
      let from = 0;
      for (let to = chunk.indexOf("\n"); to >= 0; to = chunk.indexOf("\n", from)) {
        add(chunk.subarray(from, to));
        end();
        from = to + 1;
      }
      add(chunk.subarray(from));
    }
    if (length > 0) {
      end();
      found.isCut = true;
    }
  } catch (error) {
    throw cannot("read", file, error);
  }
  if (found.problem !== undefined) report(`${file}: ${found.problem}`);
  return found.lines;
}

class Metrics {
  readonly lines: Line[] = [];
  isCut = false; // the last line has no end
  #count = 0;
  #wrong = { count: 0, first: 0 }; // counted from 1, as editors do

  /** undefined for a line that is too long. */
  add(text: string | undefined): void {
    this.#count++;
    const line = text === undefined ? undefined : parseLine(text);
    if (line) return void this.lines.push(line);
    if (this.#wrong.count++ === 0) this.#wrong.first = this.#count;
  }

  get problem(): string | undefined {
    const { count, first } = this.#wrong;
    if (count === 0) return undefined;
    if (this.isCut && count === 1 && first === this.#count) return "the last line is cut short, and is left out";
    const [which, are] = count === 1 ? [`line ${first}`, "is"] : [`${count} lines, from line ${first} on,`, "are"];
    return `${which} cannot be read, and ${are} left out`;
  }
}

function parseLine(text: string): Line | undefined {
  const line = parsedJson(text) as Line | null | undefined;
  return typeof line?.step === "number" ? line : undefined;
}
