/** What each package publishes of src: what it is made of, by one rule, and nothing that only tests use. */
import { globSync, readFileSync } from "node:fs";
import { isBuiltin } from "node:module";
import { dirname, join, resolve } from "node:path";
import { describe, expect, it } from "vitest";
import { withLock } from "../lock.ts";

const root = join(import.meta.dirname, "../..");
const read = (file: string) => readFileSync(join(root, file), "utf8");
const packages = globSync("{packages,native}/*/package.json", { cwd: root }).map(dirname).sort();

const rule = ["dist", "src/**/*.ts", "src/**/README.md", "!src/**/*.test.ts", "!src/**/*.bench.ts", "!src/testing"];
const notDeclared = ["**/*.test.ts", "**/*.bench.ts", "src/testing"];

/** All files that these import, one through another, and those that they name, such as a thread's. */
function importedBy(entries: readonly string[]): Set<string> {
  const found = new Set<string>();
  const visit = (file: string) => {
    if (found.has(file)) return;
    found.add(file);
    for (const [, path] of readFileSync(file, "utf8").matchAll(/"(\.\.?\/[^"\n]+\.ts)"/g))
      visit(resolve(dirname(file), path!));
  };
  entries.forEach(visit);
  return found;
}

/** Packages that a built module or its declarations name. */
const namedIn = (text: string): string[] =>
  [...text.matchAll(/(?:\bfrom\s*|\bimport\s*\(?\s*)["']([\w@][^"'\n]*)["']/g)]
    .map(([, specifier]) => specifier!)
    .filter((specifier) => !isBuiltin(specifier))
    .map((specifier) =>
      specifier
        .split("/")
        .slice(0, specifier.startsWith("@") ? 2 : 1)
        .join("/"),
    );

describe.each(packages)("%s", (folder) => {
  it("declares all packages that what is built of it names: elsewhere no other is found", async () => {
    const { name, dependencies, peerDependencies } = JSON.parse(read(`${folder}/package.json`));
    const declared = [name, ...Object.keys({ ...dependencies, ...peerDependencies })];
    // Another test may be building it.
    await withLock(
      join(root, "node_modules/.dist.lock"),
      () => {},
      async () => {
        const files = globSync("dist/**/*.{d.ts,js}", { cwd: join(root, folder) });
        expect(files.length).toBeGreaterThan(1);
        for (const file of files)
          for (const named of namedIn(read(`${folder}/${file}`)))
            expect(declared, `${file}: ${named}`).toContain(named);
      },
    );
  });

  it("has the rule of all packages for what is published, and for what is declared", () => {
    const { files } = JSON.parse(read(`${folder}/package.json`)) as { files: string[] };
    expect(files.filter((each) => each !== "CMakeLists.txt")).toEqual(rule);
    expect(JSON.parse(read(`${folder}/tsconfig.build.json`)).exclude).toEqual(notDeclared);
  });

  it("is made of all that it publishes; what only tests use is in src/testing", () => {
    const named = [...read(`${folder}/tsup.config.ts`).matchAll(/"(src\/[^"]+\.ts)"/g)].map(([, entry]) => entry!);
    const needed = importedBy(["src/index.ts", ...named].map((entry) => join(root, folder, entry)));
    const published = globSync("src/**/*.ts", { cwd: join(root, folder) }).filter(
      (file) => !/\.(test|bench)\.ts$/.test(file) && !file.startsWith("src/testing/"),
    );
    expect(published.filter((file) => !needed.has(join(root, folder, file)))).toEqual([]);
    expect([...needed].filter((file) => file.includes("/src/testing/"))).toEqual([]);
  });
});
