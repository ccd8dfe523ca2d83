/** Where a page listens: "HOST:PORT", of which either part may be left out. */
import { isIPv6 } from "node:net";
import { hostname } from "node:os";

export interface Address {
  readonly host: string;
  readonly port: number; // 0: any free port
}

export const defaultAddress: Address = { host: "127.0.0.1", port: 8377 };

/** "" → this machine's default; "0.0.0.0:80", "[::1]:80", ":80", "80", "myhost". Throws `RangeError`. */
export function parseAddress(text: string): Address {
  const [, digits] = /^:?(\d+)$/.exec(text) ?? [];
  const [, host, afterHost] =
    digits === undefined ? (/^(\[[^[\]]+\]|[\w.-]*)(?::(\d+))?$/.exec(text) ?? []) : ["", "", digits];
  const name = host?.replace(/^\[(.*)\]$/, "$1");
  const port = Number(afterHost ?? defaultAddress.port);
  if (name === undefined || (host !== name && !isIPv6(name)) || port > 65535)
    throw new RangeError(`expected HOST:PORT, :PORT or HOST, got "${text}"`);
  return { host: name || defaultAddress.host, port };
}

/** Whether only processes of this machine can reach it. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127\.\d+\.\d+\.\d+$/.test(host);
}

/** As a browser takes it; an address that stands for all of this machine's gets its name. */
export function urlOf({ host, port }: Address): string {
  const name = host === "0.0.0.0" || host === "::" ? hostname() : host;
  return `http://${isIPv6(name) ? `[${name}]` : name}:${port}/`;
}
