import { type NetworkInterfaceInfo, networkInterfaces } from "node:os";
import { describe, expect, it } from "vitest";
import { chooseAddress, isLoopbackAddress, outwardAddress } from "./address.ts";

describe("the address that a rank announces", () => {
  it("is the one that reaches the rendezvous, unless an option names another", async () => {
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

  it("is refused when it is neither an address nor a known name", async () => {
    await expect(chooseAddress("no such thing.invalid", "127.0.0.1")).rejects.toThrow(
      /the address no such thing\.invalid \(option address, or TERSE_ADDRESS\) is no IP address, no interface of /,
    );
  });
});

describe("the address by which other machines reach this one", () => {
  const at = (address: string, internal = false) =>
    [{ address, internal, family: address.includes(":") ? "IPv6" : "IPv4" }] as NetworkInterfaceInfo[];
  const lo = [...at("127.0.0.1", true), ...at("::1", true)];
  const of = (interfaces: Record<string, NetworkInterfaceInfo[]>, routed?: string) =>
    outwardAddress({ lo, ...interfaces }, async () => routed);

  it("is its only address, IPv4 if there is one", async () => {
    expect(await of({ eth0: [...at("fd00::5"), ...at("10.0.0.5"), ...at("fe80::1")] })).toBe("10.0.0.5");
    expect(await of({ eth0: [...at("fd00::5"), ...at("fe80::1")] })).toBe("fd00::5");
  });

  it("is undefined on a machine without a network", async () => {
    expect(await of({})).toBeUndefined();
  });

  it("is the source address of the route to other networks, where there are several", async () => {
    const two = { eth0: at("10.0.0.5"), ib0: at("10.1.0.5") };
    expect(await of(two, "10.1.0.5")).toBe("10.1.0.5");
    await expect(of(two)).rejects.toThrow(
      /several addresses \(10\.0\.0\.5 of eth0, 10\.1\.0\.5 of ib0\), and no route .* name one, or its interface, with TERSE_ADDRESS/,
    );
  });

  it("is one of this machine's addresses", async () => {
    const own = Object.values(networkInterfaces()).flatMap((each) => each!.map(({ address }) => address));
    const address = await outwardAddress();
    if (address) expect(own).toContain(address);
    // With two candidates the kernel's route decides.
    const wanted = address ? [...at(address), ...at("192.0.2.200")] : [];
    expect(await outwardAddress({ both: wanted }).catch(() => address)).toBe(address);
  });
});
