/** `bench app`: what the train app's own features cost. */
import type { Suite } from "../suite.ts";
import { dashboard } from "./dashboard.ts";

export const app: Suite = { dashboard };
