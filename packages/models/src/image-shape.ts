import { OptionsError } from "@terse/options";
import type { DataFacts } from "./model.ts";

interface ImageShape {
  readonly classes: number;
  readonly channels: number;
  readonly imageSize?: number; // height and width, of models that take one size alone
}

/**
 * The shape of a model of images: that of a preset, with the classes, channels and size of the data's images, and with
 * the options that a recipe gives besides. Throws `OptionsError` where the data does not fit.
 */
export function imageShape<Shape extends ImageShape>(
  preset: Shape,
  given: { readonly [Key in keyof Shape]?: Shape[Key] | undefined },
  { classes, channels, height, width }: DataFacts,
): Shape {
  const chosen = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
  const sized = preset.imageSize !== undefined;
  const ofData = { classes, channels, ...(sized && { imageSize: height }) };
  const known = Object.fromEntries(Object.entries(ofData).filter(([, value]) => value !== undefined));
  const shape: Shape = { ...preset, ...known, ...chosen };
  const problems: string[] = [];
  if (classes !== undefined && shape.classes < classes)
    problems.push(`model.classes: the data has ${classes} classes, the model only ${shape.classes}; leave it out`);
  if (channels !== undefined && shape.channels !== channels)
    problems.push(
      `model.channels: the data's images have ${channels} channels, the model takes ${shape.channels}; leave it out`,
    );
  if (sized && height !== undefined && width !== undefined && (height !== shape.imageSize || width !== shape.imageSize))
    problems.push(
      `model.imageSize: the data's images have ${height}×${width} pixels, the model takes ${shape.imageSize}×${shape.imageSize}; choose data of square images, and leave imageSize out`,
    );
  if (problems.length > 0) throw new OptionsError(problems);
  return shape;
}
