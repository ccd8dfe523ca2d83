import { CheckpointError } from "./checkpoint-error.ts";

/** `blocks.0.outProjection.weight` → `blocks.0.out_projection.weight`: names on disk are PyTorch's. */
export const snakeCase = (name: string): string =>
  name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();

/** Parameters by their name on disk. Throws `CheckpointError` where two have one name. */
export function byNameOnDisk<T>(parameters: Iterable<readonly [name: string, parameter: T]>): Map<string, T> {
  const named = new Map<string, { name: string; parameter: T }>();
  for (const [name, parameter] of parameters) {
    const onDisk = snakeCase(name);
    const other = named.get(onDisk);
    if (other)
      throw new CheckpointError(
        `The parameters ${other.name} and ${name} would both be ${onDisk} in a checkpoint; rename one of them.`,
      );
    named.set(onDisk, { name, parameter });
  }
  return new Map([...named].map(([onDisk, { parameter }]) => [onDisk, parameter]));
}
