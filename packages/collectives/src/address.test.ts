import { networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { chooseAddress, isLoopbackAddress } from "./address.ts";

describe("the address that a rank tells the others", () => {
  it("is the one that reaches the rendezvous, unless another is wanted", async () => {
    expect(await chooseAddress(undefined, "10.0.0.5")).toBe("10.0.0.5");
    expect(await chooseAddress("", "fd00::2")).toBe("fd00::2");
    expect(await chooseAddress("10.1.2.3", "10.0.0.5")).toBe("10.1.2.3");
  });

  it("may be given as an interface or as a host name", async () => {
    const [name, addresses] = Object.entries(networkInterfaces()).find(([, each]) =>
      each!.some(({ family }) => family === "IPv4"),
    )!;
    expect(addresses!.map(({ address }) => address)).toContain(await chooseAddress(name, "127.0.0.1"));
    expect(isLoopbackAddress(await chooseAddress("localhost", "127.0.0.1"))).toBe(true);
  });

  it("is refused when it is neither", async () => {
    await expect(chooseAddress("no such thing.invalid", "127.0.0.1")).rejects.toThrow(
      /the address no such thing\.invalid \(option address, or TERSE_ADDRESS\) is no IP address, no interface of /,
    );
  });
});
