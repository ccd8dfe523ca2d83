import { existsSync } from "node:fs";
import { join } from "node:path";
import { CheckpointError } from "@terse/checkpoint";

/** The path of a file in a run's folder. CheckpointError where it is not there. */
export function runFile(run: string, name: string): string {
  const file = join(run, name);
  if (!existsSync(file))
    throw new CheckpointError(`${run} has no ${name}: name the folder of a run, such as runs/NAME-TIME`);
  return file;
}
