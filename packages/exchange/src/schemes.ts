import type { ChosenSchemes } from "./chosen-schemes.ts";
import { dense } from "./means/dense.ts";
import { allToAll } from "./votes/all-to-all.ts";

/** The schemes that send the fewest bytes without changing the result. */
export const standardSchemes: ChosenSchemes = { votes: allToAll(), means: dense("f32"), computed: "f32" };
