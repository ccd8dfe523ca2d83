/**
 * Serves the page of some runs. It reads and never writes. A request names one of five things, and no file. While
 * somebody watches, one timer asks once a second whether a metrics.jsonl has grown.
 */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { accessOn } from "./access.ts";
import type { Address } from "./address.ts";
import { bundle, type PageFile } from "./bundle.ts";
import type { RunFolder } from "./run-folder.ts";
import { Viewer } from "./viewer.ts";

const mostViewers = 100;
const beatEverySeconds = 15;

export interface PageServer extends AsyncDisposable {
  /** What to open in a browser, with the token where one is needed. */
  readonly url: string;
}

const headers = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
};

/**
 * Starts to listen. `token` is for addresses that need one. Throws an `Error` of one line where the address cannot be
 * used.
 */
export async function servePage(runs: readonly RunFolder[], at: Address, token?: string): Promise<PageServer> {
  const access = accessOn(at.host, token);
  const files = await bundle();
  const viewers = new Set<Viewer>();
  let clock: NodeJS.Timeout | undefined;

  const follow = (request: IncomingMessage, response: ServerResponse) => {
    if (viewers.size >= mostViewers) return sendLine(response, 503, `${mostViewers} browsers are looking already`);
    const viewer = new Viewer(response, runs, request.headers["last-event-id"]?.toString());
    viewers.add(viewer);
    response.on("close", () => {
      viewers.delete(viewer);
      if (viewers.size > 0) return;
      clearInterval(clock);
      clock = undefined;
    });
    void viewer.send();
    let seconds = 0;
    clock ??= setInterval(() => {
      const beats = ++seconds % beatEverySeconds === 0;
      for (const each of viewers) {
        void each.send();
        if (beats) each.beat();
      }
    }, 1000);
  };

  const server = createServer((request, response) => {
    for (const [name, value] of Object.entries(headers)) response.setHeader(name, value);
    if (request.method !== "GET") return sendLine(response, 405, "this page is only read: GET");
    const path = (request.url ?? "").split("?")[0]!;
    const refused = access.refusal(request);
    const file = files.get(path);
    // A browser gets the page's files, which hold nothing of a run, because their script hands in the token.
    const isAsset = file !== undefined && path !== "/";
    const mayEnter = refused?.status === 401 && (isAsset || (file && request.headers.accept?.includes("text/html")));
    if (refused && !mayEnter) return sendLine(response, refused.status, refused.why);
    if (file) return sendFile(request, response, file, refused && !isAsset ? refused.status : 200);
    if (path === "/enter") return sendCookie(response, access.cookie(request));
    if (path === "/events") return follow(request, response);
    sendLine(response, 404, "there is nothing here; the page is /");
  });
  server.on("clientError", (_, socket) => socket.destroy());
  server.listen(at.port, at.host);
  try {
    await once(server, "listening");
  } catch (error) {
    throw new Error(whyNot(error as NodeJS.ErrnoException, at));
  }
  const { port } = server.address() as AddressInfo;
  return {
    url: access.url({ host: at.host, port }),
    async [Symbol.asyncDispose]() {
      clearInterval(clock);
      const closed = once(server, "close");
      server.close();
      await Promise.race([Promise.all([...viewers].map((viewer) => viewer.send())), sleep(500)]);
      for (const viewer of viewers) viewer.end();
      server.closeIdleConnections();
      const late = setTimeout(() => server.closeAllConnections(), 500);
      await closed;
      clearTimeout(late);
    },
  };
}

function sendFile(
  request: IncomingMessage,
  response: ServerResponse,
  { type, body, gzip, etag }: PageFile,
  status: number,
): void {
  response.setHeader("cache-control", "no-cache").setHeader("etag", etag).setHeader("vary", "accept-encoding");
  if (status === 200 && request.headers["if-none-match"] === etag) return void response.writeHead(304).end();
  const zipped = /\bgzip\b/.test(request.headers["accept-encoding"]?.toString() ?? "");
  if (zipped) response.setHeader("content-encoding", "gzip");
  const sent = zipped ? gzip : body;
  response.writeHead(status, { "content-type": type, "content-length": sent.length });
  response.end(sent);
}

function sendCookie(response: ServerResponse, cookie: string | undefined): void {
  if (cookie !== undefined) response.setHeader("set-cookie", cookie);
  response.writeHead(204, { "cache-control": "no-store" }).end();
}

function sendLine(response: ServerResponse, status: number, line: string): void {
  response
    .writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" })
    .end(`${line}\n`);
}

function whyNot({ code, message }: NodeJS.ErrnoException, { host, port }: Address): string {
  if (code === "EADDRINUSE") return `port ${port} of ${host} is taken; choose another one, or 0 for any`;
  if (code === "EACCES") return `port ${port} needs root; choose one above 1023, or 0 for any`;
  if (code === "EADDRNOTAVAIL" || code === "ENOTFOUND" || code === "EAI_AGAIN")
    return `${host} is no address of this machine; 127.0.0.1 is, and 0.0.0.0 stands for all`;
  return `cannot listen on ${host}:${port}: ${message}`;
}
