/** `bench app`: what the train app's own features cost, and how soon it recovers. */
import type { Suite } from "../suite.ts";
import { advice } from "./advice.ts";
import { dashboard } from "./dashboard.ts";
import { recovery } from "./recovery.ts";
import { trace } from "./trace.ts";

export const app: Suite = { advice, dashboard, recovery, trace };
