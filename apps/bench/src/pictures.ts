/** The pictures of measurements, by suite. */
import { bars } from "./codecs/bars.ts";
import { convergencePicture } from "./convergence/report.ts";
import { predictions } from "./cost-model/predictions.ts";
import { exchangePicture } from "./exchange/report.ts";
import { recipePicture } from "./recipe/report.ts";
import type { RecordedLine } from "./recording.ts";
import { trainPicture } from "./train/report.ts";

/** `overrides`: of the recipe that was measured. Undefined where the lines have nothing that the picture shows. */
type Picture = (lines: readonly RecordedLine[], overrides: readonly string[]) => string | undefined;

export const pictures: Readonly<Record<string, Picture>> = {
  codecs: bars,
  convergence: convergencePicture,
  "cost-model": predictions,
  exchange: exchangePicture,
  recipe: recipePicture,
  train: trainPicture,
};
