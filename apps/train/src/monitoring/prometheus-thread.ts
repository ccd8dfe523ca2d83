/**
 * The thread that answers Prometheus (prometheus.ts) with the latest text that it was given. Few connections are open
 * at once, each is for one answer, and the number of answers a second is limited for all clients together: a client
 * that asks in a loop has to wait.
 */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { setPriority } from "node:os";
import { parentPort, workerData } from "node:worker_threads";
import { refusalOfName } from "./refusal-of-name.ts";

/** Where it listens. */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

/** What it says when it listens, or cannot. */
export type ListenResult = { readonly port: number } | { readonly code: string | undefined; readonly message: string };

const mostConnections = 16;
const mostAnswersPerSecond = 20; // a Prometheus asks a few times a minute
const mostSeconds = 5; // for a request to arrive

// Steps come first on the processors. On other systems than Linux this would set the priority of the whole process.
if (process.platform === "linux") setPriority(19);

const { host, port } = workerData as ListenAddress;
let text = "";
let next = 0; // when the next answer may be given

const server = createServer(
  {
    headersTimeout: 1000 * mostSeconds,
    requestTimeout: 1000 * mostSeconds,
    connectionsCheckingInterval: 1000,
    keepAlive: false,
  },
  (request, response) => {
    const now = performance.now();
    next = Math.max(now, next) + 1000 / mostAnswersPerSecond;
    const answer = () => {
      response.setHeader("connection", "close");
      const refusal = refusalOfName(request.headers.host ?? "", host);
      if (refusal !== undefined) return void response.writeHead(403).end(`${refusal}\n`);
      const [path] = (request.url ?? "").split("?");
      if (path !== "/metrics") return void response.writeHead(404).end("there is only /metrics\n");
      if (request.method !== "GET" && request.method !== "HEAD")
        return void response.writeHead(405, { allow: "GET, HEAD" }).end();
      response.writeHead(200, { "content-type": "text/plain; version=0.0.4; charset=utf-8" }).end(text);
    };
    setTimeout(answer, Math.max(0, next - now - 1000 / mostAnswersPerSecond)); // rounding makes it less than 0
  },
);
server.maxConnections = mostConnections;
server.maxRequestsPerSocket = 1; // others on the same connection would wait in front of those on other ones
server.on("clientError", (_, socket) => socket.destroy());

const say = (heard: ListenResult) => parentPort!.postMessage(heard);
server.once("error", ({ code, message }: NodeJS.ErrnoException) => {
  say({ code, message });
  parentPort!.close();
});
server.listen(port, host, () => say({ port: (server.address() as AddressInfo).port }));
parentPort!.on("message", (given: string) => {
  text = given;
});
