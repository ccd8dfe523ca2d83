/** The datasets of images, for the registry. */
import { finite, flag, positive, positiveInteger, text, unitInterval, v } from "@terse/options";
import type { SampledEntry } from "../dataset.ts";
import { augmentationOptions } from "./augment/augmentation.ts";
import { type CifarName, cifar, cifarForms } from "./cifar.ts";
import { imageFolder, imageFolderInventory, imageNetForm } from "./image-folder.ts";
import { ImageSamples } from "./image-samples.ts";
import type { ImageSet } from "./images.ts";
import { madeForm, madeImages } from "./made-images.ts";
import { countClasses } from "./pictures/picture-folder.ts";
import { processorFile } from "./processor-file.ts";

const fields = ["images", "labels"];

const cifarOptions = v.object({
  path: v.optional(text), // the folder of the binary version; made images of the same form if absent
  ...augmentationOptions.entries,
});

const cifarEntry = (name: CifarName): SampledEntry => ({
  options: cifarOptions,
  fields,
  facts: () => ({ classes: cifarForms[name].classes, channels: 3, height: 32, width: 32 }),
  processorFiles: async ({ path }: v.InferOutput<typeof cifarOptions>) =>
    processorFile(path === undefined ? madeForm : cifarForms[name], 32),
  async samples({ path, ...augment }: v.InferOutput<typeof cifarOptions>, { seed }) {
    const set = path === undefined ? madeImages({ classes: cifarForms[name].classes }) : await cifar(name, path);
    return new ImageSamples(set, { seed, augment });
  },
});

const madeOptions = v.object({
  classes: v.optional(positiveInteger, 10),
  size: v.optional(positiveInteger, 32), // height and width in pixels
  ...augmentationOptions.entries,
});
type MadeOptions = v.InferOutput<typeof madeOptions>;

const madeEntry: SampledEntry = {
  options: madeOptions,
  fields,
  facts: ({ classes, size }: MadeOptions) => ({ classes, channels: 3, height: size, width: size }),
  processorFiles: async ({ size }: MadeOptions) => processorFile(madeForm, size),
  samples: async ({ classes, size, ...augment }: MadeOptions, { seed }) =>
    new ImageSamples(madeImages({ classes, side: size }), { seed, augment }),
};

/** A number for each channel. */
const ofChannels = <S extends v.GenericSchema<unknown, number>>(each: S) =>
  v.pipe(v.array(each), v.length(3, "expected three numbers, of red, green and blue"));

const folderOptions = v.object({
  path: text, // a folder with train/ and val/, or with a folder for each class
  classes: v.optional(positiveInteger), // folders of classes; as many as there are if absent
  size: positiveInteger, // height and width in pixels
  resize: v.optional(flag, false), // scale and crop pictures of other sizes
  mean: v.optional(ofChannels(finite)), // of red, green and blue, in pixels from 0 to 1; ImageNet's if absent
  deviation: v.optional(ofChannels(positive)), // the same
  validationFraction: v.optional(unitInterval, 0.1), // where there are no train/ and val/
  // The share of pictures that may fail to decode; others take their places.
  maxCorrupt: v.optional(unitInterval, 0.01),
  ...augmentationOptions.entries,
});
type FolderOptions = v.InferOutput<typeof folderOptions>;

const formOf = ({ mean, deviation }: Pick<FolderOptions, "mean" | "deviation">) =>
  ({ mean: mean ?? imageNetForm.mean, deviation: deviation ?? imageNetForm.deviation }) as Pick<
    ImageSet,
    "mean" | "deviation"
  >;

const folderEntry: SampledEntry = {
  options: folderOptions,
  fields,
  facts: ({ path, classes, size }: FolderOptions) => ({
    classes: classes ?? countClasses(path),
    channels: 3,
    height: size,
    width: size,
  }),
  inventory: (options: FolderOptions) => imageFolderInventory(options),
  processorFiles: async (options: FolderOptions) => processorFile(formOf(options), options.size),
  async samples(options: FolderOptions, given) {
    const { maxCorrupt, path, classes, size, resize, mean, deviation, validationFraction, ...augment } = options;
    const { holdOutAll = false } = given;
    const set = await imageFolder({ path, classes, size, resize, validationFraction, holdOutAll }, given);
    return new ImageSamples(
      { ...set, ...formOf({ mean, deviation }) },
      { seed: given.seed, augment, corrupt: maxCorrupt },
    );
  },
};

export const imageEntries = {
  "image-folder": folderEntry,
  cifar10: cifarEntry("cifar10"),
  cifar100: cifarEntry("cifar100"),
  "made-images": madeEntry,
};
