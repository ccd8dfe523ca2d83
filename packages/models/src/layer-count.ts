import { positiveInteger, v } from "@terse/options";

/** Deeper than any model. Every layer is made of objects, also where its weights take no memory. */
export const layerCount = v.pipe(positiveInteger, v.maxValue(10_000));
