import { int8 } from "@terse/codecs";
import { describe, expect, it } from "vitest";
import { retained } from "./retained.ts";

const onGpu = (device = "cuda:0") => ({ pointer: 4096n, length: 0, dtype: "f32", device }) as const;
const codec = { ...int8(), runsOn: (device: string) => device === "cuda:0" };
const kind = { memory: "replaced", ofCodec: ["error"] } as const;

/** Where a kind finds its vectors. */
const found = (of: typeof kind, options: object, x = onGpu()) =>
  retained(of, x, options, async (vector: object, given: object) =>
    [vector, ...Object.values(given)].map((each) => (ArrayBuffer.isView(each) ? "host" : each.device)).filter(Boolean),
  );

describe("memory of a GPU", () => {
  it("stays where the codec runs, if it is all there", async () => {
    expect(await found(kind, { codec, error: onGpu() })).toEqual(["cuda:0", "cuda:0"]);
    expect(await found(kind, { codec })).toEqual(["cuda:0"]);
  });

  it("is on the host where the codec does not run, where others touch it, and where it is on two devices", async () => {
    expect(await found(kind, { codec: { ...codec, runsOn: () => false }, error: onGpu() })).toEqual(["host", "host"]);
    expect(await found(kind, { codec, error: onGpu(), ownersError: onGpu() })).toEqual(["cuda:0", "cuda:0", "host"]);
    expect(await found(kind, { codec, error: onGpu("cuda:1") })).toEqual(["host", "host"]);
    expect(await found(kind, { codec, error: onGpu() }, onGpu("cuda:1"))).toEqual(["host", "host"]);
    expect(await found({ memory: "replaced" } as never, { codec, error: onGpu() })).toEqual(["host", "host"]);
  });
});
