import type { Codec } from "@terse/codecs";

/** The parts of a request that its cost depends on: n elements and a codec. */
export interface CodedVector {
  readonly n: number;
  readonly codec: Codec;
}

export interface CodecMessage<Name extends string> extends CodedVector {
  readonly kind: Name;
}
