/**
 * f16: IEEE 754 binary16, rounded to nearest even. 5 bits of exponent, 10 of fraction; denormals are kept.
 *
 * This file is the definition, with shared/half-floats/half-floats.ts: f16.c, f16_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import { halves } from "../../shared/half-floats/half-floats.ts";

export const definition = halves({ name: "f16", fraction: 10, least: -14 });

/** Two bytes per float: 4 decimal digits from 6e-8 to 65504. Refuses |x| ≥ 65520, which would become infinite. */
export const f16 = codec<Record<never, never>>(definition);
