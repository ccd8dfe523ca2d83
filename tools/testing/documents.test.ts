import { existsSync, globSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { readArguments } from "../../apps/train/src/arguments.ts";
import { defaultRecipe, readRecipe } from "../../apps/train/src/recipe.ts";
import { readSweepArguments } from "../../apps/train/src/sweep/sweep-arguments.ts";
import { root } from "../toolchain.ts";
import { commandsIn } from "./commands-in.ts";

const isBuilt = (path: string) => /(^|\/)(node_modules|build|dist)$/.test(path);
const documents = globSync(["*.md", "docs/**/*.md", "{packages,native,apps,tools,test-e2e}/**/*.md"], {
  cwd: root,
  exclude: isBuilt,
}).sort();
const read = (file: string) => readFileSync(join(root, file), "utf8");

/** The help of each command, by the command. */
const helps: Record<string, string> = Object.fromEntries(
  Object.entries({
    "tools/help.txt": ["test", "check", "build", "release", "docs", "doctor", "setup", "env", "help", "--version"],
    "apps/train/src/help.txt": ["train", "sample", "eval"],
    "apps/train/src/commands/help.txt": ["advise", "compare", "completion", "config", "export"],
    "apps/train/src/sweep/help.txt": ["sweep"],
    "apps/train/src/data/help.txt": ["data"],
    "apps/page/src/help.txt": ["page"],
    "apps/bench/src/help.txt": ["bench"],
    "apps/bench/src/cost/help.txt": ["cost"],
    "tools/netlab/help.txt": ["netlab"],
  }).flatMap(([file, commands]) => commands.map((command) => [command, read(file)])),
);

/** What is wrong with the arguments of `./terse`; undefined if nothing is. */
function problemOf([command = "", ...args]: readonly string[]): string | undefined {
  const help = helps[command];
  if (help === undefined) return `there is no command ${command}`;
  const isPlaceholder = (word: string) => /^[A-Z]+…?$|^…$/.test(word);
  if (["train", "sample", "eval"].includes(command)) {
    try {
      const given = args.filter((word) => !isPlaceholder(word) || args.length > 1);
      const onGpus = /^--nproc-per-node=gpu$/; // this machine may have none
      const read = readArguments([command, ...given.map((word) => word.replace(onGpus, "--nproc-per-node=1"))], {});
      if (read === "help" || read.command !== "train" || read.resume !== undefined) return undefined;
      if (read.recipe === undefined || !isPlaceholder(read.recipe))
        readRecipe(read.recipe ?? defaultRecipe, read.overrides);
      return undefined;
    } catch (error) {
      return String((error as Error).message);
    }
  }
  if (command === "sweep")
    try {
      readSweepArguments(args);
      return undefined;
    } catch (error) {
      return String((error as Error).message);
    }
  const unknown = args
    .filter((word) => /^--\w/.test(word))
    .map((word) => word.split("=")[0]!)
    .filter((flag) => !["--help"].includes(flag) && !help.includes(flag));
  if (unknown.length > 0) return `its help does not know ${unknown.join(", ")}`;
  const [first] = args;
  if (["config", "data", "completion", "bench"].includes(command) && first !== undefined && /^[a-z]/.test(first))
    if (!new RegExp(`\\b${first}\\b`).test(help)) return `its help does not know ${first}`;
  return undefined;
}

it("no help has a line of more than 80 columns, which a narrow terminal would break", () => {
  const wide = [...new Set(Object.values(helps))].flatMap((help) =>
    help.split("\n").filter((line) => [...line].length > 80),
  );
  expect(wide).toEqual([]);
});

describe("every document", () => {
  it("is found", () => expect(documents.length).toBeGreaterThan(40));

  it("has commands that exist, with arguments and recipe keys that are taken", () => {
    const problems: string[] = [];
    let commands = 0;
    for (const file of documents)
      for (const { line, words } of commandsIn(read(file))) {
        // `srun … ./terse train …` and `./terse netlab … -- ./terse train …`: everything behind a ./terse is its own.
        const starts = words.flatMap((word, i) => (/(^|\/)terse$/.test(word) && word.startsWith(".") ? [i] : []));
        for (const [k, start] of starts.entries()) {
          commands++;
          const problem = problemOf(words.slice(start + 1, starts[k + 1]).filter((word) => word !== "--"));
          if (problem !== undefined) problems.push(`${file}:${line}: ${words.join(" ")}: ${problem}`);
        }
        for (const word of words)
          if (/^(\.\/)?(packages|native|apps|tools|docs|\.ci)\//.test(word) && !/[*$…]|\/build$/.test(word))
            if (!existsSync(join(root, word)) && !existsSync(join(root, dirname(file), word)))
              problems.push(`${file}:${line}: ${word} does not exist`);
      }
    expect(problems).toEqual([]);
    expect(commands).toBeGreaterThan(40);
  });

  it("names no command of ./terse in its sentences that does not exist", () => {
    const unknown = documents.flatMap((file) =>
      [...read(file).matchAll(/\.\/terse ([a-z]\w*)/g)]
        .filter(([, command]) => helps[command!] === undefined)
        .map(([text]) => `${file}: ${text}`),
    );
    expect(unknown).toEqual([]);
  });

  it("says of every suite that is recorded how to measure it again", () => {
    const results = read("docs/results/README.md");
    const recorded = globSync("docs/results/*.jsonl", { cwd: root }).map((file) => basename(file, ".jsonl"));
    expect(recorded.filter((suite) => !results.includes(`./terse bench ${suite} --record`))).toEqual([]);
    expect(recorded.length).toBeGreaterThan(5);
  });

  it("links to files and headings that exist", () => {
    const slugs = (file: string) =>
      [...read(file).matchAll(/^#+ (.*)$/gm)].map(([, heading]) =>
        heading!
          .toLowerCase()
          .replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1")
          .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
          .trim()
          .replaceAll(" ", "-"),
      );
    const broken = documents.flatMap((file) =>
      [
        ...read(file)
          .replaceAll(/```[\s\S]*?```|`[^`\n]*`/g, "")
          .matchAll(/\]\(([^)\s]+)\)/g),
      ]
        .map(([, target]) => target!)
        .filter((target) => {
          if (/^[a-z]+:/.test(target)) return false;
          const [path = "", anchor] = target.split("#");
          const linked = path === "" ? file : join(dirname(file), path);
          if (!existsSync(join(root, linked))) return true;
          const page = linked.endsWith(".md") ? linked : join(linked, "README.md");
          return anchor !== undefined && !(existsSync(join(root, page)) && slugs(page).includes(anchor));
        })
        .map((target) => `${file}: ${target}`),
    );
    expect(broken).toEqual([]);
  });
});
