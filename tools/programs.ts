/** The programs behind ./terse's commands, and what each needs on this machine. */
import { join } from "node:path";
import type { Part } from "./commands/set-up.ts";
import { root } from "./toolchain.ts";

export interface Program {
  needs: readonly Part[];
  /** Its file, from the root. */
  file: string;
  /** For a program of several commands: its first argument is the command's name. */
  shared?: boolean;
}

export const toRun: readonly Part[] = ["packages", "libraries", "native"];
export const toCompare: readonly Part[] = [...toRun, "python"];

const train = { needs: toRun, file: "apps/train/src/main.ts", shared: true };
const aboutRuns = { needs: toRun, file: "apps/train/src/commands/main.ts", shared: true };

export const programs: Readonly<Record<string, Program>> = {
  train,
  sample: train,
  eval: train,
  advise: aboutRuns,
  compare: aboutRuns,
  completion: aboutRuns,
  config: aboutRuns,
  export: aboutRuns,
  sweep: { needs: toRun, file: "apps/train/src/sweep/main.ts" },
  data: { needs: toRun, file: "apps/train/src/data/main.ts" },
  page: { needs: ["packages"], file: "apps/page/src/main.ts" },
  bench: { needs: toCompare, file: "apps/bench/src/main.ts" },
  cost: { needs: ["packages"], file: "apps/bench/src/cost/main.ts" },
};

/** Node's flags for a program. It loads the workspace's packages from their TypeScript sources, without a build. */
export const nodeFlags: readonly string[] = [
  "--conditions=@terse/source",
  `--import=${new URL("bundled/register.ts", import.meta.url)}`,
];

/** Node's arguments for a command. */
export function argumentsOf({ file, shared = false }: Program, [name, ...args]: readonly string[]): string[] {
  return [...nodeFlags, join(root, file), ...(shared ? [name!] : []), ...args];
}
