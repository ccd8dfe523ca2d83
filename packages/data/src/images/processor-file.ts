/** The file with which transformers' AutoImageProcessor prepares pictures as a dataset does. */
import type { ProcessorFiles } from "../dataset.ts";
import type { ImageSet } from "./images.ts";

const bilinear = 2; // of PIL

/** Scales a picture so that its shorter side has `size` pixels, cuts out the middle, and normalises each channel. */
export function processorFile({ mean, deviation }: Pick<ImageSet, "mean" | "deviation">, size: number): ProcessorFiles {
  const processor = {
    image_processor_type: "CLIPImageProcessor",
    do_convert_rgb: true,
    do_resize: true,
    size: { shortest_edge: size },
    resample: bilinear,
    do_center_crop: true,
    crop_size: { height: size, width: size },
    do_rescale: true,
    rescale_factor: 1 / 255,
    do_normalize: true,
    image_mean: mean,
    image_std: deviation,
  };
  return { "preprocessor_config.json": `${JSON.stringify(processor, undefined, 2)}\n` };
}
