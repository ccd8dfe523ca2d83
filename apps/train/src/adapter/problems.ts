import type { Recipe } from "../recipe-schema.ts";

/** Where an adapter does not fit the rest of a recipe, a line each. */
export function problemsOfAdapter({ adapter, exchange }: Recipe): string[] {
  if (!adapter) return [];
  const problems: string[] = [];
  if (exchange.buffers === "mean")
    problems.push(
      "exchange.buffers: mean, and with adapter the running statistics stay those of the base; leave it out",
    );
  if (adapter.targets?.length === 0)
    problems.push(
      "adapter.targets: names nothing; name ends of modules' names, or all-linear, or leave it out for PEFT's choice",
    );
  return problems;
}
