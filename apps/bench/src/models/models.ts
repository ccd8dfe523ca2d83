/** `bench models`: the speed of models, of their data and of their files, and what they reach on real data. */
import type { Suite } from "../suite.ts";
import { dataWaiting } from "./data-waiting.ts";
import { loading, stepWhileSaving } from "./files.ts";
import { runs } from "./runs.ts";
import { compared, stepTime } from "./step-time.ts";

export const models: Suite = {
  ...Object.fromEntries(Object.entries(compared).map(([name, of]) => [name, () => stepTime(of)])),
  data: dataWaiting,
  loading,
  saving: stepWhileSaving,
  ...runs,
};
