import { hostname } from "node:os";
import { describe, expect, it } from "vitest";
import { refusalOfName } from "./refusal-of-name.ts";

describe("a request under a name", () => {
  const rebound = [
    "evil.example",
    "evil.example:9464",
    "10.0.0.1.evil.example",
    "local.evil.example",
    "[::1].evil.example",
  ];

  it("is answered on loopback for this machine's loopback names only", () => {
    for (const name of ["localhost:1", "127.0.0.1", "127.1.2.3:9464", "[::1]:9464", "localhost.", "LOCALHOST"])
      expect(refusalOfName(name, "127.0.0.1"), name).toBeUndefined();
    for (const name of [...rebound, "10.0.0.1", "", "node-1"])
      expect(refusalOfName(name, "127.0.0.1"), name).toMatch(/ask localhost/);
  });

  it("is answered elsewhere for addresses, for names that nobody can register, and for the name it listens on", () => {
    const own = [
      "10.0.0.1:9464",
      "[fe80::1]:9464",
      "localhost",
      hostname(),
      "node-1:9464",
      "node-1.local",
      "a.b.internal",
      "",
    ];
    for (const name of own) expect(refusalOfName(name, "0.0.0.0"), name).toBeUndefined();
    for (const name of rebound) expect(refusalOfName(name, "0.0.0.0"), name).toMatch(/--prometheus NAME:PORT/);
    expect(refusalOfName("Node-1.Example.com:9464", "node-1.example.com")).toBeUndefined();
    expect(refusalOfName("node-2.example.com", "node-1.example.com")).toBeDefined();
  });
});
