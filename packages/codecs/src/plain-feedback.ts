/** Error feedback one pass after the other, which defines what kernels do in one. */
import type { CodecKernel, DecodeCall, EncodeCall, Parameters } from "@terse/native-codecs";

/**
 * error = decay · error + x, wire = encode(error), error −= decode(wire), in three passes. As
 * terse_codec_encode_with_feedback.
 */
export function withFeedback(
  kernel: CodecKernel,
  wire: Uint8Array,
  x: Float32Array,
  error: Float32Array,
  parameters: Parameters,
  call: EncodeCall,
): number {
  const bad = x.findIndex((value) => !Number.isFinite(value));
  if (bad >= 0) return bad;
  const decay = Math.fround(call.decay ?? 1);
  const sum = error.map((value, i) => Math.fround(decay * value) + x[i]!);
  const accepted = kernel.encode(wire, sum, parameters, call);
  if (accepted < x.length) return accepted;
  error.set(sum);
  kernel.decodeAdd(error, wire, parameters, { ...call, scale: -1 });
  return accepted;
}

/**
 * error = decay · error + scale Σ decode(wires), wire = encode(error), error −= decode(wire), one after the other. As
 * terse_codec_encode_sum_with_feedback; −1 is a bad wire.
 */
export function sumWithFeedback(
  kernel: CodecKernel,
  wire: Uint8Array,
  wires: readonly Uint8Array[],
  error: Float32Array,
  parameters: Parameters,
  call: EncodeCall & DecodeCall,
): number {
  const decay = Math.fround(call.decay ?? 1);
  for (const [i, value] of error.entries()) error[i] = decay * value;
  for (const one of wires) if (!kernel.decodeAdd(error, one, parameters, call)) return -1;
  const accepted = kernel.encode(wire, error, parameters, call);
  if (accepted === error.length) kernel.decodeAdd(error, wire, parameters, { ...call, scale: -1 });
  return accepted;
}
