/** `bench app`: what the train app's own features cost. */
import type { Suite } from "../suite.ts";
import { advice } from "./advice.ts";
import { dashboard } from "./dashboard.ts";
import { trace } from "./trace.ts";

export const app: Suite = { advice, dashboard, trace };
