/**
 * Who may see a page. On loopback, every request that names this machine: a web page from elsewhere then cannot read it
 * under a host name of its own. On any other address, everybody who knows the token. The browser takes the token from
 * the fragment of the address, which it never sends to a server. It hands the token in once and gets a cookie that
 * scripts cannot read.
 */
import { createHash, randomBytes, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { type Address, isLoopback, urlOf } from "./address.ts";

export interface Access {
  /** The address with all that a browser needs. */
  url(at: Address): string;
  /** Why this request is refused; undefined where it is not. */
  refusal(request: IncomingMessage): { status: 401 | 403; why: string } | undefined;
  /** The cookie of a browser that has handed in the token. */
  cookie(request: IncomingMessage): string | undefined;
}

/** The variable that holds the token, so that a restarted page keeps it. Without it each page makes its own. */
export const tokenVariable = "TERSE_PAGE_TOKEN";

export const newToken = (): string => randomBytes(24).toString("base64url");

/**
 * Who may see a page that listens on `host`. Throws an `Error` where the token is easy to guess, or no cookie can hold
 * it.
 */
export function accessOn(host: string, token: string = newToken()): Access {
  if (isLoopback(host)) return onLoopback;
  if (!/^[\w-]{16,}$/.test(token))
    throw new Error(
      `${tokenVariable} is no token: it takes 16 or more letters, digits, _ and -; without it a new one is made`,
    );
  return withToken(token);
}

const onLoopback: Access = {
  url: urlOf,
  refusal(request) {
    if (namesThisMachine(request)) return undefined;
    return { status: 403, why: "this page is for its own machine: open it as http://localhost, or through ssh -L" };
  },
  cookie: () => undefined,
};

/** Whether a request names this machine by a name that no one else can have. */
export function namesThisMachine({ headers: { host = "" } }: IncomingMessage): boolean {
  return isLoopback(host.replace(/:\d+$/, "").replace(/^\[(.*)\]$/, "$1"));
}

/** An address without its token, for places that others may read. */
export const withoutToken = (url: string): string => url.replace(/#token=.*$/, "");

function withToken(token: string): Access {
  return {
    url: (at) => `${urlOf(at)}#token=${token}`,
    refusal(request) {
      if ([bearer(request), cookieOf(request)].some((given) => given !== undefined && same(given, token)))
        return undefined;
      return {
        status: 401,
        why: "this page needs its token: open the whole address that the terminal shows, with #token=…",
      };
    },
    cookie: (request) => `${cookieName(request)}=${token}; Path=/; HttpOnly; SameSite=Strict`,
  };
}

function bearer({ headers: { authorization = "" } }: IncomingMessage): string | undefined {
  return /^Bearer (\S+)$/.exec(authorization)?.[1];
}

function cookieOf(request: IncomingMessage): string | undefined {
  const prefix = `${cookieName(request)}=`;
  const pairs = (request.headers.cookie ?? "").split("; ");
  return pairs.find((pair) => pair.startsWith(prefix))?.slice(prefix.length);
}

/** Cookies belong to a host, not to a port, and a host may show several pages. */
const cookieName = ({ socket }: IncomingMessage) => `terse-page-${socket.localPort}`;

/** Takes the same time wherever the texts differ. */
function same(a: string, b: string): boolean {
  const hash = (text: string) => createHash("sha256").update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}
