import { globSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export interface Example {
  package: string; // "@terse/codecs"
  folder: string; // "packages/codecs"
  code: string;
  printed: string;
}

/** The examples in the READMEs of packages: the first block of TypeScript, and the block of what it prints. */
export function examples(root: string): Example[] {
  return globSync("{packages,native}/*/README.md", { cwd: root })
    .sort()
    .flatMap((file) => {
      const folder = dirname(file);
      const text = readFileSync(join(root, file), "utf8");
      const code = /```ts\n([\s\S]*?)```/.exec(text)?.[1];
      const printed = /```text\n([\s\S]*?)```/.exec(text)?.[1];
      if (code === undefined || printed === undefined) return [];
      const { name } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as { name: string };
      return [{ package: name, folder, code, printed }];
    });
}
