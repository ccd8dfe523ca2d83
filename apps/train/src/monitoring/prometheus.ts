/**
 * The last numbers of a run in Prometheus' text format: https://prometheus.io/docs/instrumenting/exposition_formats/
 * The text is made once for each logged line. A thread (prometheus-thread.ts) answers with it, so that requests take no
 * time of the rank.
 */
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { type Line, type NumberOfLine, numbersOf } from "./numbers-of.ts";
import type { ListenAddress, ListenResult } from "./prometheus-thread.ts";

/** Sums that only grow, under the names that Prometheus wants for them. */
const counters: Readonly<Record<string, string>> = {
  step: "terse_steps_total",
  elapsed_seconds: "terse_elapsed_seconds_total",
  total_bytes: "terse_sent_bytes_total",
};

/** What the places of lists are, by what stands before the key's slash. */
const labels: Readonly<Record<string, string>> = { ranks: "rank", layers: "layer", quantizers: "quantizer" };

/** As the value of a label. */
const escaped = (place: number | string) =>
  String(place).replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");

export class Prometheus implements Disposable {
  readonly #last = new Map<string, Omit<NumberOfLine, "key">[]>(); // by key
  #thread: Worker | undefined;

  /** Listens on the host and port; port 0 takes a free one. Resolves to its URL. Rejects with the system's error. */
  async listen({ host, port }: { host: string; port: number }): Promise<string> {
    const workerData: ListenAddress = { host, port };
    const thread = new Worker(new URL("prometheus-thread.ts", import.meta.url), { workerData });
    this.#thread = thread;
    thread.unref();
    const [heard] = (await once(thread, "message")) as [ListenResult];
    thread.on("error", () => {}); // it is gone, and the run goes on
    if ("code" in heard) throw Object.assign(new Error(heard.message), { code: heard.code });
    return `http://${host.includes(":") ? `[${host}]` : host}:${heard.port}/metrics`;
  }

  /** Takes over the numbers of a line. */
  show(line: Line): void {
    this.#last.set("step", [{ value: line.step }]);
    for (const [key, values] of Map.groupBy(numbersOf(line), ({ key }) => key)) this.#last.set(key, values);
    this.#thread?.postMessage(this.#text());
  }

  #text(): string {
    return [...this.#last]
      .map(([key, values]) => {
        const name = counters[key] ?? `terse_${key.replaceAll(/[^a-zA-Z0-9_]/g, "_")}`;
        const [folder] = key.split("/");
        const label = labels[folder!] ?? "place";
        const samples = values.map(
          ({ value, place }) => `${name}${place === undefined ? "" : `{${label}="${escaped(place)}"}`} ${value}\n`,
        );
        return `# TYPE ${name} ${key in counters ? "counter" : "gauge"}\n${samples.join("")}`;
      })
      .join("");
  }

  [Symbol.dispose](): void {
    void this.#thread?.terminate();
  }
}
