import type { Codec } from "@terse/codecs";

/** Makes a value once for each codec and numbers: making a chunk's codec, say, can take longer than using it. */
export function perCodec<Numbers extends readonly number[], T extends object>(
  make: (codec: Codec, ...numbers: Numbers) => T,
): (codec: Codec, ...numbers: Numbers) => T {
  const known = new WeakMap<Codec, Map<string, T>>();
  return (codec, ...numbers) => {
    const of = known.get(codec) ?? new Map<string, T>();
    known.set(codec, of);
    const key = numbers.join("/");
    const value = of.get(key) ?? make(codec, ...numbers);
    of.set(key, value);
    return value;
  };
}
