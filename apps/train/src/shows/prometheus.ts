/**
 * The last numbers of a run for Prometheus, in its text format 0.0.4, at GET /metrics.
 * https://prometheus.io/docs/instrumenting/exposition_formats/
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { type Line, numbersOf } from "./numbers-of.ts";

/** Sums that only grow, under the names that Prometheus wants for them. */
const counters: Readonly<Record<string, string>> = {
  step: "terse_steps_total",
  elapsed_seconds: "terse_elapsed_seconds_total",
  total_bytes: "terse_sent_bytes_total",
};

export class Prometheus implements Disposable {
  readonly #last = new Map<string, { value: number; place?: number }[]>(); // by key
  readonly #server = createServer((request, response) => {
    const [path] = (request.url ?? "").split("?");
    if (path !== "/metrics") return void response.writeHead(404).end("there is only /metrics\n");
    if (request.method !== "GET" && request.method !== "HEAD")
      return void response.writeHead(405, { allow: "GET, HEAD" }).end();
    response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(this.text());
  });

  /** Listens on the host and port; port 0 takes a free one. Rejects with the system's error where it cannot. Resolves to its URL. */
  async listen({ host, port }: { host: string; port: number }): Promise<string> {
    this.#server.unref();
    this.#server.listen(port, host);
    await once(this.#server, "listening");
    const { port: taken } = this.#server.address() as AddressInfo;
    return `http://${host.includes(":") ? `[${host}]` : host}:${taken}/metrics`;
  }

  /** Takes over the numbers of a line. */
  show(line: Line): void {
    this.#last.set("step", [{ value: line.step }]);
    for (const [key, values] of Map.groupBy(numbersOf(line), ({ key }) => key)) this.#last.set(key, values);
  }

  text(): string {
    return [...this.#last]
      .map(([key, values]) => {
        const name = counters[key] ?? `terse_${key.replaceAll(/[^a-zA-Z0-9_]/g, "_")}`;
        const label = key.startsWith("ranks/") ? "rank" : "place";
        const samples = values.map(
          ({ value, place }) => `${name}${place === undefined ? "" : `{${label}="${place}"}`} ${value}\n`,
        );
        return `# TYPE ${name} ${key in counters ? "counter" : "gauge"}\n${samples.join("")}`;
      })
      .join("");
  }

  [Symbol.dispose](): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}
