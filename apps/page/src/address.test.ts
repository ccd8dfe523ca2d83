import { describe, expect, it } from "vitest";
import { isLoopback, parseAddress, urlOf } from "./address.ts";

describe("an address", () => {
  it.each([
    ["", "127.0.0.1", 8377],
    ["80", "127.0.0.1", 80],
    [":80", "127.0.0.1", 80],
    ["0.0.0.0", "0.0.0.0", 8377],
    ["0.0.0.0:80", "0.0.0.0", 80],
    ["node-7:80", "node-7", 80],
    ["node-7", "node-7", 8377],
    ["[::1]:80", "::1", 80],
    ["[::1]", "::1", 8377],
  ])("%j is host %s and port %i", (text, host, port) => expect(parseAddress(text)).toEqual({ host, port }));

  it.each(["0.0.0.0:65536", "a:b", "::1", "[a]:80", "a b", "http://a", "a/b", "a:80:80"])("%j is none", (text) => {
    expect(() => parseAddress(text)).toThrow(`expected HOST:PORT, :PORT or HOST, got "${text}"`);
  });

  it("of loopback reaches this machine alone", () => {
    expect(["127.0.0.1", "127.9.9.9", "::1", "localhost"].map(isLoopback)).toEqual([true, true, true, true]);
    expect(["0.0.0.0", "10.0.0.1", "::", "127.0.0.1.example.org", "localhost.example.org"].some(isLoopback)).toBe(
      false,
    );
  });

  it("is written as a URL", () => {
    expect(new URL(urlOf({ host: "::1", port: 80 })).host).toBe("[::1]");
    expect(urlOf({ host: "10.0.0.1", port: 8377 })).toBe("http://10.0.0.1:8377/");
  });
});
