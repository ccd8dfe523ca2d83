import { codec } from "./codec.ts";
import { sign as signDefinition } from "./sign/sign.ts";
import { voteImplementation } from "./vote/majority.ts";

export { type Floats, NotFiniteError, type PointerMemory, type Sign } from "@terse/native-codecs";
export { type Codec, codec, type DecodeOptions, type EncodeOptions } from "./codec.ts";
export { signAt, type TiePolicy, type ZeroPolicy } from "./policies.ts";
export { majority, majorityOrZero, maxVotes, tally, tallyPlanes } from "./vote/majority.ts";

/** One bit a float. */
export const sign = codec(signDefinition);

/** Which implementation runs: "avx2", "scalar", "typescript", … The environment variable TERSE_IMPLEMENTATION forces one. */
export const implementation = (of: "sign" | "vote" = "sign"): string =>
  of === "vote" ? voteImplementation() : sign.implementation;
