import type { Codec } from "@terse/codecs";

/** The parts of a request that its cost depends on: n elements and a codec. */
export interface Coded {
  readonly n: number;
  readonly codec: Codec;
}

export interface CodecMessage<Name extends string> extends Coded {
  readonly kind: Name;
}
