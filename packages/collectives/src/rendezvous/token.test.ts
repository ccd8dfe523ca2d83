import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { connect } from "node:net";
import { expect, it, vi } from "vitest";
import { protocolVersion } from "./protocol.ts";
import { serveRendezvous } from "./server.ts";

vi.mock("node:crypto", async (original) => {
  const crypto = await original<typeof import("node:crypto")>();
  return { ...crypto, timingSafeEqual: vi.fn(crypto.timingSafeEqual) };
});

const digest = (text: string) => createHash("sha256").update(text).digest();

async function ask(port: number, token: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  const hello = { terse: protocolVersion, token, epoch: "0", rank: 0, size: 1, config: "", pid: 1, host: "here" };
  socket.end(`${JSON.stringify(hello)}\n`);
  const [answer] = await once(socket.setEncoding("utf8"), "data");
  socket.destroy();
  return answer;
}

// The time of a comparison must not depend on how much of a guess is right, or on the length of the secret.
it.each([
  ["wrong from the first letter", "xpen sesame"],
  ["right but for the last letter", "open sesamx"],
  ["shorter", "open"],
  ["longer", "open sesame, please"],
  ["empty", ""],
])("a token is compared in constant time, as digests of one length, when it is %s", async (_, guess) => {
  await using server = await serveRendezvous({ size: 1, token: "open sesame" });
  vi.mocked(timingSafeEqual).mockClear();
  expect(await ask(server.port, guess)).toContain("the token is wrong");
  expect(vi.mocked(timingSafeEqual).mock.calls).toEqual([[digest(guess), digest("open sesame")]]);
  expect(await ask(server.port, "open sesame")).toContain("welcome");
});

const linkOf = (file: string) => {
  try {
    return readlinkSync(file);
  } catch {
    return ""; // the descriptor by which the folder was read; it is closed
  }
};

it("the rendezvous listens on the address that it was given, and on no other", async () => {
  await using server = await serveRendezvous({ size: 2, token: "t", host: "127.0.0.3" });
  const port = server.port.toString(16).toUpperCase().padStart(4, "0");
  // Another process may listen at the same port of another address.
  const own = new Set(readdirSync("/proc/self/fd").map((fd) => linkOf(`/proc/self/fd/${fd}`)));
  const listening = ["tcp", "tcp6"].flatMap((family) =>
    readFileSync(`/proc/self/net/${family}`, "utf8")
      .split("\n")
      .map((line) => line.trim().split(/\s+/))
      .filter((fields) => fields[3] === "0A" && fields[1]!.endsWith(`:${port}`) && own.has(`socket:[${fields[9]}]`))
      .map(([, local]) => local),
  );
  expect(listening).toEqual([`0300007F:${port}`]);
  const elsewhere = connect(server.port, "127.0.0.9");
  const [error] = await once(elsewhere, "error");
  expect(error.code).toBe("ECONNREFUSED");
});
