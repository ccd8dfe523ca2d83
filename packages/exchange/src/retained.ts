import type { Codec } from "@terse/codecs";
import { type BufferLike, retain } from "@terse/collectives";
import type { Kind } from "./kinds/kind.ts";
import { deviceOf, HostCopies } from "./on-host.ts";

type Named = [name: string, buffer: BufferLike];

/**
 * Runs `use` with a vector and options. The memory of the vector, and of every buffer among the options, stays until
 * `use` has ended, even if a tensor is disposed meanwhile. It is on the host for kinds that ask for that: the buffers
 * are then written, the vector only where the kind replaces it.
 */
export async function retained<X, O extends object, R>(
  { memory, ofCodec }: Pick<Kind<X, O, unknown, R, never>, "memory" | "ofCodec">,
  vector: X,
  given: O,
  use: (x: X, options: O) => Promise<R>,
): Promise<R> {
  if (memory === "own") return use(vector, given);
  const named = Object.entries(given).filter(([, value]) => isNativeBuffer(value)) as Named[];
  using kept = retain(vector as BufferLike, ...named.map(([, buffer]) => buffer));
  const [x, ...others] = kept.buffers as readonly [BufferLike, ...BufferLike[]];
  const buffers = named.map(([name], i): Named => [name, others[i]!]);
  const options: O = { ...given, ...Object.fromEntries(buffers) };
  if (memory === "stays") return await use(x as X, options);

  using copies = new HostCopies();
  const isOfCodec = ([name]: Named) => ofCodec?.includes(name) === true;
  const stay = ofCodec !== undefined && runsThere([x, ...buffers.filter(isOfCodec).map(([, each]) => each)], options);
  const moving = stay ? buffers.filter((each) => !isOfCodec(each)) : buffers;
  const here = Object.fromEntries(moving.map(([name, buffer]) => [name, copies.of(buffer)]));
  const isReplaced = memory === "replaced" && (given as { into?: unknown }).into === undefined;
  const result = await use((stay ? x : isReplaced ? copies.of(x) : copies.read(x)) as X, { ...options, ...here });
  copies.giveBack();
  return result;
}

/** Whether all are on one device, and the codec among the options runs there. */
function runsThere(floats: readonly BufferLike[], { codec }: { readonly codec?: Codec }): boolean {
  const [device, ...others] = floats.map(deviceOf);
  return codec?.runsOn(device!) === true && others.every((other) => other === device);
}

/** Whether an option is memory behind a pointer. */
const isNativeBuffer = (value: unknown): boolean =>
  typeof value === "object" && value !== null && !ArrayBuffer.isView(value) && "pointer" in value;
