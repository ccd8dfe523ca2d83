import { describe, expect, it } from "vitest";
import { hostOf } from "./find-rendezvous.ts";

/** Resolves a name to 192.0.2.7 from the given time on. */
const nameServer = (fromTheTimeOn: number) => {
  let asked = 0;
  const resolve = async (name: string) => {
    if (++asked < fromTheTimeOn) throw new Error(`getaddrinfo ENOTFOUND ${name}`);
    return { address: "192.0.2.7" };
  };
  return { resolve, asked: () => asked };
};

describe("the host of a rendezvous", () => {
  it("is an address where the rank listens, also if the name resolves only some time after the start", async () => {
    const { resolve, asked } = nameServer(3);
    expect(await hostOf("job-master-0", undefined, true, 30, resolve)).toBe("192.0.2.7");
    expect(asked()).toBe(3);
  });

  it("is the name where the rank connects, which asks again whenever it tries", async () => {
    const { resolve, asked } = nameServer(3);
    expect(await hostOf("job-master-0", undefined, false, 30, resolve)).toBe("job-master-0");
    expect(asked()).toBe(1);
  });

  it("is refused where the name of the rank that listens has not resolved by the deadline", async () => {
    const { resolve, asked } = nameServer(Number.POSITIVE_INFINITY);
    await expect(hostOf("job-master-0", undefined, true, 0.2, resolve)).rejects.toThrow(
      "the rendezvous cannot listen at job-master-0, which did not resolve within 0.2 s (getaddrinfo ENOTFOUND job-master-0); MASTER_ADDR, or --rdzv-endpoint, must name the machine of rank 0",
    );
    expect(asked()).toBeGreaterThan(1);
  });
});
