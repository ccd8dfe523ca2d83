/** The pictures of measurements, by suite. */
import { bars } from "./codecs/bars.ts";
import { convergencePicture } from "./convergence/report.ts";
import { predictions } from "./cost-model/predictions.ts";
import { exchangePicture } from "./exchange/report.ts";
import { bitsPicture, secondsPicture } from "./local/pictures.ts";
import { papersPictures } from "./papers/pictures.ts";
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
  local: secondsPicture,
  recipe: recipePicture,
  train: trainPicture,
};

/** Further pictures of a suite's record, by the end of a file's name: local-bits.svg. */
export const furtherPictures: Readonly<Record<string, Readonly<Record<string, Picture>>>> = {
  local: { bits: bitsPicture },
  papers: papersPictures,
};
