/**
 * TensorBoard's event files: records of TensorFlow's format, each with one Event of protocol buffers.
 *
 *   record    length (u64 LE) · masked crc32c of it (u32 LE) · data · masked crc32c of it (u32 LE)
 *   masked    ((crc >> 15 | crc << 17) + 0xa282ead8) mod 2³²
 *   Event     1 wall_time (double, seconds)  2 step (varint)  3 file_version (string)  5 summary  7 session_log
 *   Summary   1 value, repeated: 1 tag (string)  2 simple_value (float)
 *   Session   1 status (varint): START says that steps from this one on are taken again
 *
 * TensorFlow, "TFRecord" and event.proto, https://www.tensorflow.org/tutorials/load_data/tfrecord
 */
import { crc32c } from "@terse/codecs";

const sessionStarts = 1;

/** The first record of a file. */
export function versionRecord(seconds: number): Uint8Array {
  return record(event(seconds, [field(3, text("brain.Event:2"))]));
}

/** Says that values from this step on, of earlier files, do not count. */
export function restartRecord(seconds: number, step: number): Uint8Array {
  return record(event(seconds, [varintField(2, step), field(7, varintField(1, sessionStarts))]));
}

/** Values of a step by name. */
export function scalarsRecord(
  seconds: number,
  step: number,
  values: Iterable<readonly [name: string, value: number]>,
): Uint8Array {
  const each = [...values].map(([name, value]) => field(1, join([field(1, text(name)), float(2, value)])));
  return record(event(seconds, [varintField(2, step), field(5, join(each))]));
}

function record(data: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(16 + data.length);
  const view = new DataView(bytes.buffer);
  view.setBigUint64(0, BigInt(data.length), true);
  view.setUint32(8, masked(bytes.subarray(0, 8)), true);
  bytes.set(data, 12);
  view.setUint32(12 + data.length, masked(data), true);
  return bytes;
}

function masked(bytes: Uint8Array): number {
  const crc = crc32c(bytes);
  return (((crc >>> 15) | (crc << 17)) + 0xa282ead8) >>> 0;
}

const event = (seconds: number, fields: readonly Uint8Array[]) => join([double(1, seconds), ...fields]);

/** Types of protocol buffers: 0 varint, 1 eight bytes, 2 a length and bytes, 5 four bytes. */
const key = (number: number, type: 0 | 1 | 2 | 5) => (number << 3) | type;

const field = (number: number, bytes: Uint8Array) => join([Uint8Array.of(key(number, 2)), varint(bytes.length), bytes]);

const varintField = (number: number, value: number) => join([Uint8Array.of(key(number, 0)), varint(value)]);

function double(number: number, value: number): Uint8Array {
  const bytes = new Uint8Array(9);
  bytes[0] = key(number, 1);
  new DataView(bytes.buffer).setFloat64(1, value, true);
  return bytes;
}

function float(number: number, value: number): Uint8Array {
  const bytes = new Uint8Array(5);
  bytes[0] = key(number, 5);
  new DataView(bytes.buffer).setFloat32(1, value, true);
  return bytes;
}

/** Seven bits a byte, the lowest first; all but the last byte have the highest bit. */
function varint(value: number): Uint8Array {
  const bytes: number[] = [];
  for (let rest = BigInt(value); ; rest >>= 7n) {
    const low = Number(rest & 127n);
    if (rest < 128n) return Uint8Array.of(...bytes, low);
    bytes.push(low | 128);
  }
}

const text = (value: string) => new TextEncoder().encode(value);

const join = (parts: readonly Uint8Array[]): Uint8Array => new Uint8Array(Buffer.concat(parts));
