/**
 * One browser that follows the runs, by server-sent events:
 *
 *   run      {"run": 0, "of": 1, "name": …, "recipe": …, "problems": […]}       for each run, first
 *   lines    the number of a run, then lines of its metrics.jsonl as they are
 *   anew     the number of a run whose metrics.jsonl begins again: the lines before do not count
 *   state    {"run": 0, "running": true, "age": 1.2, "cut": false}
 *
 * The id of an event is the place after it, so a browser that reconnects gets what it has not seen. A slow browser is
 * sent no more than it takes: what is new waits in the file.
 */
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { begin, type Place, type RunFolder } from "./run-folder.ts";

export class Viewer {
  readonly #response: ServerResponse;
  readonly #runs: readonly RunFolder[];
  readonly #places: Place[];
  readonly #states: string[] = [];
  #sending = false;
  #again = false;

  constructor(response: ServerResponse, runs: readonly RunFolder[], lastEventId: string | undefined) {
    this.#response = response;
    this.#runs = runs;
    this.#places = placesOf(lastEventId, runs.length);
    response.on("error", () => {}); // it is gone, and "close" follows
    response.writeHead(200, {
      "content-type": "text/event-stream",
      "cache-control": "no-store",
      "x-accel-buffering": "no",
    });
    response.write("retry: 2000\n\n");
    runs.forEach(({ name, recipe, problems }, run) => {
      this.#write(`event: run\ndata: ${JSON.stringify({ run, of: runs.length, name, recipe, problems })}\n\n`);
    });
  }

  /**
   * Sends what is new. Resolves when it is handed over, or when the browser is gone. Where a file cannot be read, the
   * connection ends and the browser reconnects.
   */
  async send(): Promise<void> {
    this.#again = true;
    if (this.#sending) return;
    this.#sending = true;
    try {
      while (this.#again) {
        this.#again = false;
        for (const run of this.#runs.keys()) await this.#sendRun(run);
      }
    } catch {
      this.#response.destroy();
    } finally {
      this.#sending = false;
    }
  }

  /** Keeps the connection open where nothing is new. */
  beat(): void {
    if (!this.#response.writableNeedDrain) this.#response.write(":\n\n");
  }

  end(): void {
    this.#response.end();
  }

  async #sendRun(run: number): Promise<void> {
    const folder = this.#runs[run]!;
    while (!this.#response.destroyed && folder.hasMore(this.#places[run]!)) {
      const before = this.#places[run]!;
      const { lines, next, anew } = await folder.linesAfter(before);
      this.#places[run] = next;
      if (anew) this.#write(`event: anew\ndata: ${run}\n\n`);
      if (next.offset === before.offset) break; // the rest of a line is not there yet
      if (lines.length === 0) continue;
      const data = lines.map((line) => `data: ${line}\n`).join("");
      this.#write(
        `event: lines\nid: ${this.#places.map(({ file, offset }) => `${file}:${offset}`).join(",")}\ndata: ${run}\n${data}\n`,
      );
      if (this.#response.writableNeedDrain) await taken(this.#response);
    }
    const { running, age, cut } = folder.state();
    const known = JSON.stringify({ running, cut, silent: age === undefined ? -1 : Math.floor(Math.log2(1 + age)) });
    if (this.#states[run] === known) return; // the browser counts seconds itself
    this.#states[run] = known;
    this.#write(`event: state\ndata: ${JSON.stringify({ run, running, age, cut })}\n\n`);
  }

  #write(event: string): void {
    if (!this.#response.destroyed) this.#response.write(event);
  }
}

/** When the browser has taken what was sent, or is gone. */
async function taken(response: ServerResponse): Promise<void> {
  const over = new AbortController();
  const either = ["drain", "close"].map((event) => once(response, event, { signal: over.signal }));
  await Promise.race(either).catch(() => {});
  over.abort();
}

/** From the id of the last event that a browser has seen; the beginnings where it says nothing. */
function placesOf(lastEventId: string | undefined, runs: number): Place[] {
  const places = (lastEventId ?? "").split(",").map((text) => {
    const [file = 0, offset = 0] = text.split(":").map(Number);
    return Number.isSafeInteger(file) && Number.isSafeInteger(offset) && offset >= 0 ? { file, offset } : begin;
  });
  return places.length === runs ? places : Array.from({ length: runs }, () => begin);
}
