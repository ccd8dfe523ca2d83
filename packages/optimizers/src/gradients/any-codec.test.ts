import { describe, expect, it } from "vitest";
import { anyCodec } from "../index.ts";
import { gradientContract, ledgerOf, type MeanOracle, meansOf } from "../testing/gradient-contract.ts";
import { onRanks } from "../testing/on-ranks.ts";
import { mean } from "../testing/optimizer-contract.ts";

type Options = Parameters<typeof anyCodec>[0];

const withFeedback: Options[] = [
  { codec: "int8" },
  { codec: "l1", bits: 4 },
  { codec: "bin-means" },
  { codec: "bin-means", bits: 2, block: 64 },
  { codec: "linf", bits: 5, block: 64 },
  { codec: "bf16" },
  { codec: "scaled-sign" },
  { codec: "top-k", ratio: 0.05 },
  { codec: "top-k", ratio: 0.05, indices: "elias-fano", values: "f16" },
  { codec: "top-k", ratio: 0.1, indices: "elias-fano", values: "2bit" },
  { codec: "top-k", ratio: 0.1, values: "sign" },
  { codec: "dct-top-k", block: 16, k: 4 },
];

gradientContract("codec: scaled-sign with error feedback", { create: () => anyCodec({ codec: "scaled-sign" }) });
gradientContract("codec: int8 without error feedback", {
  create: () => anyCodec({ codec: "int8", errorFeedback: false }),
});

/** The means of the ranks' signs: a zero counts as plus where there is none. */
const meanOfSigns = (zero: number) => (): MeanOracle => (g) =>
  mean(g.map((own) => own.map((value) => Math.sign(value) || zero)));
gradientContract("codec: sign, which has no error feedback", {
  create: () => anyCodec({ codec: "sign", errorFeedback: false }),
  oracle: meanOfSigns(1),
});
gradientContract("codec: ternary, which has no error feedback", {
  create: () => anyCodec({ codec: "ternary", errorFeedback: false }),
  oracle: meanOfSigns(0),
});
for (const options of [{ codec: "qsgd", bits: 3, block: 16 }, { codec: "terngrad" }] as const)
  gradientContract(`codec: ${options.codec}, which has no error feedback`, {
    create: () => anyCodec({ ...options, errorFeedback: false }),
  });

describe("any codec", () => {
  it.each(withFeedback)("with error feedback loses nothing: %o", async (options) => {
    const names = { error: "gradientError", ownerError: "gradientOwnerError", shape: [320, 1] };
    const { sent, kept, given } = await ledgerOf(() => anyCodec(options), names);
    for (const [i, value] of given.entries()) expect(sent[i]! + kept[i]!).toBeCloseTo(value, 3);
    expect(Math.max(...kept.map(Math.abs))).toBeGreaterThan(0);
  });

  it.each(withFeedback)("forgets by the decay of its errors and loses nothing else: %o", async (options) => {
    const names = { error: "gradientError", ownerError: "gradientOwnerError", shape: [320, 1], decay: 0.9 };
    const { sent, kept, given } = await ledgerOf(() => anyCodec({ ...options, decay: 0.9 }), names);
    for (const [i, value] of given.entries()) expect(sent[i]! + kept[i]!).toBeCloseTo(value, 3);
    const { kept: keptWhole } = await ledgerOf(() => anyCodec({ ...options, decay: 1 }), names);
    expect(kept).not.toEqual(keptWhole);
  });

  it("gives the bits of errors without decay where the decay is 1", async () => {
    const names = { error: "gradientError", ownerError: "gradientOwnerError", shape: [320, 1] };
    for (const options of withFeedback) {
      const ledgers = [options, { ...options, decay: 1 }].map((given) => ledgerOf(() => anyCodec(given), names));
      expect(await ledgers[1]).toEqual(await ledgers[0]);
    }
  });

  it("refuses a decay outside of (0, 1], and one without an error", () => {
    for (const decay of [0, -1, 1.5, Number.NaN])
      expect(() => anyCodec({ codec: "int8", decay })).toThrow(/^codec\.decay: /);
    expect(() => anyCodec({ codec: "int8", errorFeedback: false, decay: 0.95 })).toThrow(
      "codec.decay: there is no error that it could shrink: errorFeedback is false; leave it out, or set errorFeedback to true",
    );
  });

  it("without error feedback is within half of a level that all ranks have agreed on", async () => {
    const gradients = (rank: number) =>
      Float32Array.from({ length: 500 }, (_, i) => Math.sin(i + 7 * rank) * 2 ** rank);
    const means = await onRanks(3, async (group) => {
      const int8 = anyCodec({ codec: "int8", errorFeedback: false });
      return (await meansOf(group, int8, [gradients(group.rank)])).means[0]!;
    });
    const exact = mean([0, 1, 2].map((rank) => [...gradients(rank)]));
    const level = Math.max(...[0, 1, 2].flatMap((rank) => [...gradients(rank)].map(Math.abs))) / 127;
    for (const [i, value] of means[0]!.entries())
      expect(Math.abs(value - exact[i]!)).toBeLessThanOrEqual(level / 2 + 1e-6);
    for (const each of means) expect(each).toEqual(means[0]);
  });

  it.each([
    [{ codec: "qsgd", bits: 3, block: 50 }, (x: readonly number[]) => Math.hypot(...x) / 3, "one for all ranks"],
    [{ codec: "terngrad", clip: 0 }, (x: readonly number[]) => Math.max(...x.map(Math.abs)), "each rank's own"],
  ] as const)("draws levels whose mean is the gradient: %o", async (options, levelOf, whose) => {
    const copies = 2000; // 1e5 draws of each rank
    const pattern = Array.from({ length: 50 }, (_, i) => Math.sin(3 * i) * (i % 7 === 2 ? 3 : 0.5));
    const own = [1, 0.5].map((factor) => pattern.map((value) => factor * value));
    const [drawn] = await onRanks(2, async (group) => {
      const g = Float32Array.from({ length: 50 * copies }, (_, i) => own[group.rank]![i % 50]!);
      return (await meansOf(group, anyCodec({ ...options, errorFeedback: false, seed: 5 }), [g])).means[0]!;
    });
    for (let j = 0; j < 50; j++) {
      const variance = own.reduce((sum, x) => {
        const level = levelOf(whose === "one for all ranks" ? own[0]! : x);
        const p = (Math.abs(x[j]!) / level) % 1;
        return sum + level ** 2 * p * (1 - p);
      }, 0);
      const average = drawn!.reduce((sum, value, i) => (i % 50 === j ? sum + value : sum), 0) / copies;
      expect(Math.abs(average - 0.75 * pattern[j]!)).toBeLessThanOrEqual(4 * Math.sqrt(variance / 4 / copies) + 1e-6);
    }
    expect(new Set(drawn!.filter((_, i) => i % 50 === 1)).size).toBeGreaterThan(1);
  });

  it("refuses error feedback with a codec that has none, and says what to do", () => {
    for (const options of [
      { codec: "sign" },
      { codec: "ternary" },
      { codec: "qsgd", bits: 4 },
      { codec: "terngrad" },
      { codec: "linf", bits: 2 },
    ] as const) {
      expect(() => anyCodec(options)).toThrow(
        new RegExp(`^codec\\.errorFeedback: ${options.codec} has none.*set errorFeedback to false`),
      );
      expect(anyCodec({ ...options, errorFeedback: false }).name).toBe(options.codec);
    }
  });

  it("refuses parameters that the codec does not have, and names them", () => {
    expect(() => anyCodec({ codec: "int8", bits: 4 })).toThrow("codec.bits: int8 takes none, it has block");
    expect(() => anyCodec({ codec: "l1" })).toThrow("codec.bits: l1 needs it");
    expect(() => anyCodec({ codec: "top-k" })).toThrow(/^codec\.ratio: top-k needs it/);
    expect(() => anyCodec({ codec: "int8", ratio: 0.1 })).toThrow(
      "codec.ratio: int8 takes none, it has block; leave it out",
    );
    expect(() => anyCodec({ codec: "linf" })).toThrow("codec.bits: linf needs it; give the bits of an element");
    expect(() => anyCodec({ codec: "linf", bits: 9 })).toThrow(
      "codec.bits: 9, and must be a whole number, from 2 to 8",
    );
    expect(() => anyCodec({ codec: "bf16", block: 64 })).toThrow("codec.block: bf16 takes none, it has no options");
    expect(() => anyCodec({ codec: "top-k", ratio: 0.1, block: 64, bits: 3 })).toThrow(
      /codec\.bits: top-k takes none, it has ratio, indices, and values; leave it out\s.*codec\.block: top-k takes none/s,
    );
    expect(() => anyCodec({ codec: "dct-top-k", block: 64, k: 4, indices: "elias-fano" })).toThrow(
      "codec.indices: dct-top-k takes none, it has block and k; leave it out",
    );
    expect(() => anyCodec({ codec: "top-k", ratio: 0.1, values: "int8" as "f16" })).toThrow(/^codec\.values: .*2bit/s);
    expect(() => anyCodec({ codec: "dct-top-k", block: 64 })).toThrow("codec.k: dct-top-k needs it");
  });
});
