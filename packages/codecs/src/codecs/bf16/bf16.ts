/**
 * bf16: the upper half of an fp32, rounded to nearest even. 8 bits of exponent, 7 of fraction.
 * Kalamkar et al. 2019, "A Study of BFLOAT16 for Deep Learning Training", https://arxiv.org/abs/1905.12322
 *
 * This file is the definition, with shared/half-floats/half-floats.ts: bf16.c, bf16_avx2.c, … write the same bytes.
 */
import { codec } from "../../checked-codec.ts";
import { halves } from "../../shared/half-floats/half-floats.ts";

export const definition = halves({ name: "bf16", fraction: 7, least: -126 });

/** Two bytes per float: fp32's range, 3 decimal digits. Refuses |x| ≥ 3.3961776e38, which would become infinite. */
export const bf16 = codec<Record<never, never>>(definition);
