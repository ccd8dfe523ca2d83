/** `bench app`: what the train app's own features cost, and how soon it recovers. */
import type { Suite, SuiteOptions } from "../suite.ts";
import { advice } from "./advice.ts";
import { dashboard } from "./dashboard.ts";
import { recovery } from "./recovery.ts";
import { trace } from "./trace.ts";

const rates = ["20mbit", "100mbit", "1gbit"];

export const app: Suite = {
  ...Object.fromEntries(rates.map((rate) => [`advice-${rate}`, (options: SuiteOptions) => advice(rate, options)])),
  dashboard,
  recovery,
  trace,
};
