import { v } from "@terse/options";

/** Two keys of a model's options, of which the second must divide the first. The error names the second. */
export const divides = <
  T extends { readonly [key in Whole | Part]: number },
  Whole extends string,
  Part extends string,
>(
  part: Part,
  whole: Whole,
) =>
  v.rawCheck<T>(({ dataset, addIssue }) => {
    if (!dataset.typed || dataset.value[whole] % dataset.value[part] === 0) return;
    const { [part]: value, [whole]: all } = dataset.value;
    addIssue({
      message: `${value} does not divide ${whole}, ${all}`,
      path: [{ type: "object", origin: "value", input: dataset.value, key: part, value }],
    });
  });
