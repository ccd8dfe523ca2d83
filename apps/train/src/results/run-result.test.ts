import { expect, it } from "vitest";
import { resultOf } from "./run-result.ts";

it("takes for the best loss the one that save.best looks at: of the average of the weights, where there is one", () => {
  const lines = [4, 2, 3].map((loss, i) => ({ step: 10 * i, "val/loss": loss }));
  expect(resultOf("run", "adamw", lines)).toMatchObject({ validation: 3, best: 2 });
  const ofAverage = [4, 3.5, 2.5];
  const averaged = lines.map((line, i) => ({ ...line, "val/loss_of_average": ofAverage[i]! }));
  expect(resultOf("run", "adamw", averaged)).toMatchObject({ validation: 3, best: 2.5 });
});
