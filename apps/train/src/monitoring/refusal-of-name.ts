import { isIP } from "node:net";
import { hostname } from "node:os";
import { isLoopback } from "@terse/page/address";

/** Top-level names that nobody can register: RFC 6762, RFC 8375 and ICANN's resolution of 29 July 2024. */
const privateEnds = [".local", ".home.arpa", ".internal"];

/**
 * Why a request under the name in its `Host` header is refused by a server that listens on `listensOn`; undefined where
 * it is not. A web page can have a public name of its own lead to this machine, and read under it what the server
 * answers. Addresses, and names that are not public, cannot lead here so.
 */
export function refusalOfName(header: string, listensOn: string): string | undefined {
  const name = header
    .replace(/:\d*$/, "")
    .replace(/^\[(.*)\]$/, "$1")
    .replace(/\.$/, "")
    .toLowerCase();
  if (isLoopback(listensOn))
    return isLoopback(name) ? undefined : "these numbers are for their own machine: ask localhost for them";
  const isOwn = [listensOn, hostname()].some((own) => own.toLowerCase() === name);
  const isPrivate = !name.includes(".") || privateEnds.some((end) => name.endsWith(end));
  if (isIP(name) !== 0 || isOwn || isPrivate) return undefined;
  return "this machine does not know that name as its own: ask its address, or give the name to --prometheus NAME:PORT";
}
