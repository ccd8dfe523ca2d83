/** From a definition to the codec that users have. */
import {
  type CodecKernel,
  cudaCodecs,
  type EncodeCall,
  type Floats,
  NativeMissingError,
  codecs as nativeCodecs,
  levels as nativeLevels,
  type Parameters,
  refuseGone,
  warnOnce,
} from "@terse/native-codecs";
import {
  accept,
  badWire,
  checkBytes,
  checkEncoding,
  checkedDecay,
  checkFactor,
  checkFloats,
  checkHold,
  checkOptions,
  checkUnits,
  checkWires,
} from "./arguments.ts";
import type { Codec, Definition } from "./codec.ts";
import { choose, implementations } from "./implementation.ts";
import { sumWithFeedback, withFeedback } from "./plain-feedback.ts";
import { floats } from "./shared/floats.ts";
import { refuseOverlap } from "./shared/overlap.ts";
import { checkWhole } from "./shared/parameters.ts";
import { scaleGroupCount, segmentsWithin } from "./shared/scale-groups/scale-groups.ts";

const callNames = ["zero", "hold", "seed", "step", "index", "units"] satisfies (keyof EncodeCall)[];

/**
 * The codec of a definition: it checks its arguments, and runs the best implementation. `checked`: parameters that the
 * caller has checked.
 */
// @__NO_SIDE_EFFECTS__
export function codec<Call extends EncodeCall>(definition: Definition, checked: Parameters = {}): Codec<Call> {
  const parameters = kept(checked);
  const kernel = kernelOf(definition);
  const { name, takes } = definition;
  const kernelFor = (x: Floats): CodecKernel => (isOnCpu(x) ? kernel() : gpuKernel(name)!);
  const runsOn = (device: string) => device === "cpu" || (device.startsWith("cuda") && gpuKernel(name) !== undefined);
  const wireBytes = (n: number): number => {
    checkWhole(`${name}.wireBytes`, "n", n, 0);
    return definition.wireBytes(n, parameters);
  };

  const decodeBy =
    (method: "decodeAdd" | "decode", what: string): Codec["decodeAdd"] =>
    (to, wire, given = {}) => {
      const where = `${name}.${method}`;
      checkOptions(where, given, ["scale", "hold", "units"]);
      const { scale = 1, hold, units } = given;
      checkFloats(where, what, to, runsOn);
      checkBytes(where, "wire", wire, wireBytes(to.length), `${to.length} floats`);
      checkHold(where, takes, hold, to.length);
      checkUnits(where, takes, units, to.length, parameters);
      refuseOverlap(where, what, to, { wire, hold, units });
      checkFactor(where, "scale", scale);
      const { [method]: run, decodeAdd } = kernelFor(to);
      if (!run) floats(to).fill(0);
      if (!(run ?? decodeAdd)(to, wire, parameters, { scale, hold, units })) throw badWire(where, parameters);
    };

  const self: Codec<Call> = {
    name,
    parameters,
    takes,
    layout: definition.layout?.(parameters),
    alignment: leastCommonMultiple(
      takes.random ? 64 : 8,
      definition.blockLength?.(parameters) ?? parameters.block ?? 1,
    ),
    get summable() {
      return definition.summable?.(parameters);
    },
    kept: definition.kept && ((n) => definition.kept!(n, parameters)),
    get implementation() {
      return kernel().implementation;
    },
    runsOn,
    kernels: () => implementations(definition, nativeCodecs).kernels,
    forPart(begin, end, n) {
      const part = (definition.partParameters ?? segmentsCut)(parameters, begin, end, n);
      return part === parameters ? self : codec(definition, part);
    },
    wireBytes,

    encode(wire, x, given: EncodeCall = {}) {
      const where = `${name}.encode`;
      checkOptions(where, given, callNames);
      const call = { ...given }; // copied before any length is read: a getter could change an array
      checkEncoding(self, where, wire, x, call, { runsOn });
      accept(where, kernelFor(x).encode(wire, x, parameters, call), x);
    },

    encodeWithFeedback(wire, x, error, given: EncodeCall = {}) {
      const where = `${name}.encodeWithFeedback`;
      checkOptions(where, given, [...callNames, "decay"]);
      const call = { ...given };
      checkEncoding(self, where, wire, x, call, { runsOn });
      checkFloats(where, "error", error, runsOn);
      if (error.length !== x.length)
        throw new RangeError(
          `${where}: error has ${error.length} floats, and x has ${x.length}; give it as many, zeros at first.`,
        );
      refuseOverlap(where, "error", error, { x, wire, hold: call.hold, units: call.units });
      const decay = checkedDecay(where, call.decay);
      const native = kernelFor(x);
      const accepted = native.encodeWithFeedback
        ? native.encodeWithFeedback(wire, x, error, parameters, call)
        : withFeedback(native, wire, floats(x), floats(error), parameters, call);
      accept(where, accepted, x, { error, decay });
    },

    encodeSumWithFeedback(wire, wires, error, given: EncodeCall & { scale?: number | undefined } = {}) {
      const where = `${name}.encodeSumWithFeedback`;
      checkOptions(where, given, [...callNames, "decay", "scale"]);
      const call = { ...given, scale: given.scale ?? 1 };
      const all = [...wires];
      checkEncoding(self, where, wire, error, call, { what: "error" });
      checkWires(self, where, wire, all, error);
      refuseOverlap(where, "error", error, { hold: call.hold, units: call.units });
      checkedDecay(where, call.decay);
      checkFactor(where, "scale", call.scale);
      const native = kernel();
      const accepted = native.encodeSumWithFeedback
        ? native.encodeSumWithFeedback(wire, all, error, parameters, call)
        : sumWithFeedback(native, wire, all, floats(error), parameters, call);
      if (accepted < 0) throw badWire(where, parameters);
      accept(where, accepted, error, undefined, "the sum");
    },

    decodeAdd: decodeBy("decodeAdd", "sum"),
    decode: decodeBy("decode", "x"),

    scales(x, into) {
      const where = `${name}.scales`;
      checkFloats(where, "x", x, runsOn);
      const compute = kernelFor(x).scales;
      if (!compute) throw new TypeError(`${where}: this codec computes no scales apart from encoding; call encode.`);
      const groups = scaleGroupCount(x.length, parameters);
      const scales = into ?? new Float32Array(groups);
      if (!(scales instanceof Float32Array)) throw new TypeError(`${where}: into must be a Float32Array.`);
      refuseGone(where, "into", scales);
      if (scales.length !== groups)
        throw new RangeError(
          `${where}: into has ${scales.length} elements, and ${x.length} floats have ${groups} scale groups; give one for each.`,
        );
      refuseOverlap(where, "into", scales, { x });
      accept(where, compute(scales, x, parameters), x);
      return scales;
    },
  };
  return self;
}

const isOnCpu = (x: Floats): boolean => x instanceof Float32Array || x.device === "cpu";

/** The kernel of this codec on a GPU; undefined, after a warning, where none are built. */
function gpuKernel(codec: string): CodecKernel | undefined {
  try {
    return cudaCodecs().find(({ name }) => name === codec);
  } catch (error) {
    if (!(error instanceof NativeMissingError)) throw error;
    warnOnce(`what codecs encode goes from the GPU through the CPU, which takes longer. ${error.message}`);
    return undefined;
  }
}

/** Chooses at the first call, so that a program may say before which implementation it wants. */
// @__NO_SIDE_EFFECTS__
export function kernelOf(definition: Definition): () => CodecKernel {
  let chosen: CodecKernel | undefined;
  return () => (chosen ??= choose(implementations(definition, nativeCodecs), nativeLevels));
}

function segmentsCut(parameters: Parameters, begin: number, end: number): Parameters {
  const { segments } = parameters;
  if (!segments) return parameters;
  return { ...parameters, segments: segmentsWithin(segments, begin, end).map(({ length }) => length) };
}

/** The least common multiple of a power of two and a whole number. */
function leastCommonMultiple(power: number, of: number): number {
  let multiple = of;
  while (multiple % power !== 0) multiple *= 2;
  return multiple;
}

/** A frozen copy, which the caller cannot change. */
function kept({ segments, ...others }: Parameters): Parameters {
  return Object.freeze({ ...others, ...(segments && { segments: Object.freeze([...segments]) }) });
}
