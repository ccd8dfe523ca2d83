import { datasets } from "@terse/data";
import { type Model, models } from "@terse/models";
import { OptionsError } from "@terse/options";
import { checkFields, checkLength } from "../build.ts";
import type { Recipe } from "../recipe.ts";
import type { DescribedModel } from "../saves/model-of-run.ts";

/** Throws `OptionsError` where the model cannot read the data, before it is opened. */
export function checkFits({ name, config }: DescribedModel, model: Model, { data }: Pick<Recipe, "data">): void {
  const [entry, { name: dataName, batchSize: _, ...options }] = [datasets[data.name], data];
  checkFields(name, dataName);
  const facts = entry.facts(options);
  checkLength(facts, model);
  const shape = models[name].read(config) as Readonly<
    Record<"vocabulary" | "classes" | "channels" | "imageSize", number | undefined>
  >;
  const more = (of: number | undefined, than: number | undefined) =>
    of !== undefined && than !== undefined && of > than ? [of, than] : undefined;
  const problems: string[] = [];
  const tokens = more(facts.vocabulary, shape.vocabulary);
  if (tokens)
    problems.push(
      `data: it has ${tokens[0]} different tokens, and the model ${tokens[1]}; name the model's own tokenizer, --data.tokenizer=FILE, or other data`,
    );
  const classes = more(facts.classes, shape.classes);
  if (classes)
    problems.push(`data: it has ${classes[0]} classes, and the model ${classes[1]}; name data of its classes`);
  const { height, width, channels } = facts;
  if (shape.channels !== undefined && channels !== undefined && channels !== shape.channels)
    problems.push(`data: its images have ${channels} channels, and the model takes ${shape.channels}`);
  const side = shape.imageSize;
  if (side !== undefined && height !== undefined && (height !== side || width !== side))
    problems.push(
      `data: its images have ${height}×${width} pixels, and the model takes ${side}×${side}; of image-folder, give --data.size=${side} --data.resize=true`,
    );
  if (problems.length > 0) throw new OptionsError(problems);
}
