import { join } from "node:path";
import { CheckpointError, isObject, mayExist, parsedJson, readSmallText } from "@terse/checkpoint";

/** How pictures are prepared for a model: height, width, and each channel's mean and deviation, for pixels in 0 … 1. */
export interface ImageForm {
  readonly size?: number;
  readonly mean?: readonly number[];
  readonly deviation?: readonly number[];
}

const processorFile = "preprocessor_config.json";
const mostBytes = 1 << 20;

/**
 * What a folder's preprocessor_config.json says, as transformers' image processors read it. Throws `CheckpointError`,
 * also where it asks for what the data here does not do.
 */
export function imageFormOf(folder: string): ImageForm {
  const path = join(folder, processorFile);
  if (!mayExist(path)) return {};
  const processor = parsedJson(readSmallText(path, mostBytes));
  if (!isObject(processor)) throw new CheckpointError(`${path} is not a JSON object; copy it again.`);
  const { do_rescale = true, rescale_factor = 1 / 255, do_normalize = true, image_mean, image_std } = processor;
  if (do_rescale !== true || typeof rescale_factor !== "number" || Math.abs(rescale_factor * 255 - 1) > 1e-3)
    throw new CheckpointError(
      `${path}: rescale_factor: is ${JSON.stringify(do_rescale === true ? rescale_factor : 1)}, and only 1/255 is known here; use other weights.`,
    );
  const size = sizeOf(processor);
  const normalised = do_normalize === false ? { mean: [0, 0, 0], deviation: [1, 1, 1] } : {};
  return {
    ...(size !== undefined && { size }),
    ...(isOfChannels(image_mean) && { mean: image_mean }),
    ...(isOfChannels(image_std) && { deviation: image_std }),
    ...normalised,
  };
}

const isOfChannels = (value: unknown): value is number[] =>
  Array.isArray(value) && value.length === 3 && value.every((each) => Number.isFinite(each));

/** The side of the square that the model gets: that of the crop, else that to which pictures are scaled. */
function sizeOf({ do_center_crop, crop_size, size }: Record<string, unknown>): number | undefined {
  for (const given of [do_center_crop === false ? undefined : crop_size, size]) {
    const { height, shortest_edge } = { ...(given as { height?: unknown; shortest_edge?: unknown } | undefined) };
    const side = [given, height, shortest_edge].find((each) => Number.isSafeInteger(each) && (each as number) > 0);
    if (side !== undefined) return side as number;
  }
  return undefined;
}
