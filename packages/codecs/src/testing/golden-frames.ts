import { globSync, readFileSync } from "node:fs";
import type { Parameters } from "@terse/native-codecs";

export interface GoldenFrame {
  codec: string;
  n: number;
  parameters: Parameters;
  wire: string;
  frame: string;
}

/** Every codec's frames of its golden wires, as `frames.py` writes them. */
export const goldenFrames = (): GoldenFrame[] =>
  globSync(`${import.meta.dirname}/../codecs/*/frames.json`)
    .sort()
    .flatMap((file) => JSON.parse(readFileSync(file, "utf8")).frames);
