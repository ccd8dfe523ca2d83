import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { codecs as nativeCodecs, type Parameters } from "@terse/native-codecs";
import { describe, expect, it } from "vitest";
import { int8 } from "../../codecs/int8/int8.ts";
import { definition as l1Definition } from "../../codecs/l1/l1.ts";
import { definition as linfDefinition } from "../../codecs/linf/linf.ts";
import { codecNamed } from "../../codecs.ts";
import { implementations } from "../../implementation.ts";
import { l1, linf, NotFiniteError, qsgd, sign } from "../../index.ts";
import { fromHex, toHex } from "../../testing/hex.ts";
import { gradients } from "../../testing/inputs.ts";
import { needsPython, python } from "../../testing/python.ts";

interface Case {
  readonly codec: string;
  readonly parameters: Parameters;
  readonly call: { readonly seed?: number; readonly step?: number; readonly index?: number };
  readonly units: readonly number[];
  readonly x: readonly number[];
}

interface Answer {
  readonly wire: string; // of one rank
  readonly summed: string; // the fields of all ranks added
  readonly sum: readonly number[]; // what they stand for
}

const golden: (Case & Answer & { name: string })[] = JSON.parse(
  readFileSync(new URL("units.json", import.meta.url), "utf8"),
).cases;

const kernels = [l1Definition, linfDefinition].flatMap(
  (definition) => implementations(definition, nativeCodecs).kernels,
);

describe("units that ranks agreed on", () => {
  it.each(kernels.map((kernel) => ({ name: kernel.name, by: kernel.implementation, kernel })))(
    "give the golden bytes and sums: $name, $by",
    ({ name, kernel }) => {
      const mine = golden.filter(({ codec }) => codec === name);
      expect(mine.length).toBeGreaterThan(50);
      for (const { parameters, call, units: given, x, wire, summed, sum, name: what } of mine) {
        const units = new Float32Array(given);
        const bytes = new Uint8Array(kernel.wireBytes(x.length, parameters));
        const how = `${what}, ${JSON.stringify(parameters)}`;
        expect(kernel.encode(bytes, new Float32Array(x), parameters, { ...call, units }), how).toBe(x.length);
        expect(toHex(bytes), how).toBe(wire);
        const sums = new Float32Array(x.length);
        expect(kernel.decodeAdd(sums, fromHex(summed), parameters, { scale: 1, units }), how).toBe(true);
        expect([...sums], how).toEqual(sum.map((value) => value + 0));
      }
    },
  );

  const requests = [1, 700, 70_001].flatMap((n) =>
    [{ bits: 4 }, { bits: 8, width: 16, ranks: 257, block: 96 }, { bits: 3, segments: [n - 1, 0, 1] }].flatMap((way) =>
      ["l1", "linf"].map((codec) => {
        const groups = "block" in way ? Math.ceil(n / 96) : "segments" in way ? 3 : 1;
        const units = Array.from({ length: groups }, (_, r) => Math.fround([0.01, 0.3, 0][r % 3]!));
        const x = [...gradients(n, n + 5)];
        return {
          codec,
          parameters: { ...way, unscaled: true },
          call: { seed: 2 ** 40, step: 7, index: 128 },
          units,
          x,
        };
      }),
    ),
  );

  const wiresOf = () =>
    requests.map(({ codec, parameters, call, units, x }) =>
      kernels
        .filter(({ name }) => name === codec)
        .map((kernel) => {
          const wire = new Uint8Array(kernel.wireBytes(x.length, parameters));
          kernel.encode(wire, new Float32Array(x), parameters, { ...call, units: new Float32Array(units) });
          return toHex(wire);
        }),
    );

  it("are written the same by every implementation, for long vectors and fresh numbers", () => {
    const wires = wiresOf();
    for (const by of wires) for (const wire of by) expect(wire).toBe(by[0]);
  });

  it.skipIf(!python)(`are written as numpy writes them${needsPython}`, () => {
    const { stdout, stderr } = spawnSync(python!, [`${import.meta.dirname}/../../../units.py`, "--live"], {
      input: requests.map((request) => JSON.stringify(request)).join("\n"),
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    expect(stderr).toBe("");
    const answers = stdout.trim().split("\n");
    expect(wiresOf().map(([wire]) => wire)).toEqual(answers.map((line) => (JSON.parse(line) as Answer).wire));
  });

  it.skipIf(!python)(`are golden as units.py writes them${needsPython}`, () => {
    expect(
      spawnSync(python!, [`${import.meta.dirname}/../../../units.py`, "--check"], { encoding: "utf8" }),
    ).toMatchObject({
      status: 0,
      stderr: "",
    });
  });

  it("are kept to by error feedback: the error is what (Σ q) · unit lacks", () => {
    const codec = l1({ bits: 4, unscaled: true, block: 10 });
    const x = gradients(25, 3);
    const units = Float32Array.of(0.05, 0, 0.01);
    const [wire, error, decoded] = [new Uint8Array(codec.wireBytes(25)), new Float32Array(25), new Float32Array(25)];
    codec.encodeWithFeedback(wire, x, error, { units });
    codec.decodeAdd(decoded, wire, { units });
    expect(error).toEqual(x.map((value, i) => value - decoded[i]!));
    expect(decoded.subarray(10, 20)).toEqual(new Float32Array(10));
    expect(Math.max(...decoded)).toBeGreaterThan(0.04);
  });

  it("that are wrong are refused, each with its own message", () => {
    const codec = l1({ bits: 4, unscaled: true, block: 8 });
    const [x, wire] = [new Float32Array(20), new Uint8Array(10)];
    const by = (...units: number[]) => codec.encode(wire, x, { units: Float32Array.from(units) });
    expect(() => by(1, 1)).toThrow("l1.encode: there are 2 units, and 20 floats have 3 scale groups: one each.");
    expect(() => by(1, 1, -1)).toThrow("unit 2 is -1, and must be 0 or more, and times 15 finite in fp32.");
    expect(() => by(Number.NaN, 1, 1)).toThrow("unit 0 is NaN");
    expect(() => by(1, 1e38, 1)).toThrow("unit 1 is");
    expect(() => codec.decodeAdd(x, wire, { units: Float32Array.of(1, 1, Number.POSITIVE_INFINITY) })).toThrow(
      "unit 2",
    );
    expect(() => codec.encode(wire, x, { units: [1, 1, 1] as never })).toThrow("units must be a Float32Array");
    for (const other of [l1({ bits: 4 }), int8()])
      expect(() => other.decodeAdd(x, new Uint8Array(other.wireBytes(20)), { units: Float32Array.of(1) })).toThrow(
        "only codecs with unscaled wires (l1, linf) take units",
      );
  });
});

describe("scales", () => {
  const x = gradients(1000, 8);
  const segments = [300, 0, 699, 1];

  it.each([
    { of: "l1", codec: l1({ bits: 4, segments }) },
    { of: "linf in blocks", codec: linf({ bits: 4, block: 17 }) },
    { of: "qsgd", codec: qsgd({ bits: 4, segments }) },
    { of: "int8 in blocks", codec: int8({ block: 64 }) },
  ])("are what leads a wire: $of", ({ codec }) => {
    const wire = new Uint8Array(codec.wireBytes(1000));
    codec.encode(wire, x, { seed: 1, step: 1 } as never);
    const scales = codec.scales(x);
    expect(new Uint8Array(scales.buffer)).toEqual(wire.subarray(0, 4 * scales.length));
    for (const kernel of codec.kernels()) {
      const by = new Float32Array(scales.length);
      expect(kernel.scales!(by, x, codec.parameters), kernel.implementation).toBe(1000);
      expect(by, kernel.implementation).toEqual(scales);
    }
  });

  it("are computed the same where they are not on the wire", () => {
    expect(l1({ bits: 4, unscaled: true, block: 128 }).scales(x)).toEqual(l1({ bits: 4, block: 128 }).scales(x));
  });

  it("are refused of what is not finite, and by codecs that have none", () => {
    const bad = x.with(700, Number.NaN);
    for (const codec of [l1({ bits: 4 }), int8({ block: 64 }), qsgd({ bits: 3 })])
      expect(() => codec.scales(bad)).toThrow(NotFiniteError);
    expect(() => linf({ bits: 4 }).scales(bad)).toThrow("linf.scales: x[700] is NaN");
    expect(() => int8({ block: 100 }).scales(x, new Float32Array(9))).toThrow(
      "into has 9 elements, and 1000 floats have 10 scale groups; give one for each.",
    );
    expect(() => sign.scales(x)).toThrow(
      "sign.scales: this codec computes no scales apart from encoding; call encode.",
    );
  });
});

it("names what is not finite although no scale is computed", () => {
  for (const codec of ["l1", "linf"]) {
    const x = gradients(70_000, 1);
    x[69_999] = Number.NaN;
    x[66_001] = Number.NEGATIVE_INFINITY;
    const given = codecNamed(codec, { bits: 4, unscaled: true });
    const call = { seed: 1, step: 1, units: Float32Array.of(0.1) };
    const wire = new Uint8Array(given.wireBytes(70_000));
    expect(() => given.encode(wire, x, call as never)).toThrow(`${codec}.encode: x[66001] is -Infinity`);
  }
});
