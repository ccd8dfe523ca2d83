import { oneOf, v } from "@terse/options";

/** The keys of a recipe's `model` section: a preset, and options that override it. */
export const presetOptions = <Preset extends string, Entries extends v.ObjectEntries>(
  presets: Readonly<Record<Preset, object>>,
  fallback: NoInfer<Preset>,
  { entries }: { readonly entries: Entries },
) =>
  v.object({
    preset: v.optional(oneOf(Object.keys(presets) as Preset[]), fallback),
    ...v.partial(v.object(entries)).entries,
  });
