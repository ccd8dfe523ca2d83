/**
 * `./terse completion bash|zsh|fish`: prints what makes a shell complete commands, their flags, and what these take.
 */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { engineNames } from "@terse/collectives";
import { listOptions, OptionsError, parseArguments } from "@terse/options";
import { dottedKeys, recipeSchema } from "../recipe-schema.ts";

const shells = ["bash", "zsh", "fish"] as const;

type Shell = (typeof shells)[number];

const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8");

/** What can be completed for one command. */
interface Completions {
  /** Without "--"; `takes`: a value follows. */
  readonly flags: readonly { readonly name: string; readonly takes: boolean }[];
  /** What may follow a word, or a flag whose values are known. */
  readonly values: ReadonlyMap<string, readonly string[]>;
  readonly words: readonly string[];
}

/** Every command of the help. */
export function completions(): Map<string, Completions> {
  const all = read("../../../../tools/help.txt");
  const names = new Set([...all.matchAll(/^ {2}\.\/terse ([a-z]+)/gm)].map(([, name]) => name!));
  const [train, sample, evaluation] = read("../help.txt").split(/\n(?:sample|eval):\n/) as [string, string, string];
  const helps: Record<string, string> = {
    ...sectionsOf(all),
    ...sectionsOf(read("help.txt")),
    ...{ train, sample, eval: evaluation },
    sweep: read("../sweep/help.txt"),
    data: read("../data/help.txt"),
    page: read("../../../page/src/help.txt"),
    bench: read("../../../bench/src/help.txt"),
    cost: read("../../../bench/src/cost/help.txt"),
    netlab: read("../../../../tools/netlab/help.txt"),
  };
  const options = listOptions(recipeSchema);
  const keys = dottedKeys();
  const [, suites] = helps["bench"]!.split("\nsuites") as [string, string];
  const recipes = readdirSync(fileURLToPath(new URL("../../recipes", import.meta.url)))
    .filter((name) => name.endsWith(".yaml"))
    .map((name) => name.slice(0, -".yaml".length));
  const words: Record<string, readonly string[]> = {
    train: recipes,
    sweep: recipes,
    bench: [...suites.matchAll(/^ {2}([a-z-]+) {2,}/gm)].map(([, name]) => name!),
    completion: shells,
    config: ["explain", "schema"],
    data: ["prepare"],
  };
  const ofRuns = new Map([
    ["--recipe", recipes],
    ["--engine", engineNames],
    ["--nproc-per-node", ["auto", "cpu", "gpu"]],
    ["--device", ["cpu", "cuda"]],
    ...keys.flatMap((key) => {
      const choices = new Set(options.flatMap(({ name, takes }) => (name === key ? choicesOf(takes) : [])));
      return choices.size === 0 ? [] : [[`--${key}`, [...choices]] as const];
    }),
  ]);
  const values: Record<string, Map<string, readonly string[]>> = {
    train: ofRuns,
    sweep: ofRuns,
    config: new Map([["explain", keys]]),
  };
  const ofKeys = keys.map((name) => ({ name, takes: true }));
  return new Map(
    [...names].map((name) => [
      name,
      {
        flags: [...flagsIn(helps[name] ?? ""), ...(name === "train" || name === "sweep" ? ofKeys : [])],
        values: values[name] ?? new Map(),
        words: words[name] ?? [],
      },
    ]),
  );
}

/** The words that "true or false or one of a, b" names; none for a list, "(one of a, b)", which has several of them. */
function choicesOf(takes: string): string[] {
  const [, names] = /(?<!\()\bone of ((?:[\w.-]+, )*[\w.-]+)/.exec(takes) ?? [];
  return [...(takes.includes("true or false") ? ["true", "false"] : []), ...(names?.split(", ") ?? [])];
}

/** A help's lines by the command that they begin with. */
function sectionsOf(help: string): Record<string, string> {
  const sections = help.split(/^ {2}\.\/terse /m).slice(1);
  return Object.fromEntries(
    Object.entries(Object.groupBy(sections, (text) => /^[a-z]+/.exec(text)![0])).map(([name, texts]) => [
      name,
      texts!.join(""),
    ]),
  );
}

/** The flags that a help defines, "  --alpha S --beta S    sentence", or has in its usage, "[--json]". */
function flagsIn(help: string): { name: string; takes: boolean }[] {
  const defined = [...help.matchAll(/^ {2}(--.*?)(?: {2}|$)/gm)].map(([, label]) => label!);
  const used = [...help.matchAll(/\[(--[a-z].*?)\]/g)].map(([, label]) => label!);
  const found = [...defined, ...used].flatMap((label) => [...label.matchAll(/--([a-z-]+)( ?\S?)/g)]);
  return [...new Map(found.map(([, name, next]) => [name!, / [^-]/.test(next!)]))].map(([name, takes]) => ({
    name,
    takes,
  }));
}

/** The script for one shell. Its function is called with words that have no quotes or blanks in them. */
export function completionScript(shell: Shell): string {
  const all = [...completions()];
  if (shell === "fish") return `${fishLines(all).join("\n")}\n`;
  const compatible =
    shell === "zsh" ? "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n" : "";
  const known = all.flatMap(([name, { values }]) =>
    [...values].map(([flag, words]) => `    '${name} ${flag}') choices='${words.join(" ")}' ;;`),
  );
  const ofCommands = all.map(
    ([name, { flags, words }]) =>
      `    ${name}) plain='${words.join(" ")}' flags='${flags.map((flag) => `--${flag.name}`).join(" ")}' ;;`,
  );
  return `${compatible}_terse() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} with='' after='' choices='' plain='' flags=''
  # bash cuts words at each "=", zsh does not.
  if [ "$word" = = ]; then after=$before word='' with==
  elif [ "$before" = = ]; then after=\${COMP_WORDS[COMP_CWORD-2]} with==
  elif [[ $word == --*=* ]]; then after=\${word%%=*} word=\${word#*=} with=$after=
  else after=$before
  fi
  case "\${COMP_WORDS[1]} $after" in
${known.join("\n")}
  esac
  case \${COMP_WORDS[1]} in
${ofCommands.join("\n")}
  esac
  if [ "$COMP_CWORD" -eq 1 ]; then choices='${all.map(([name]) => name).join(" ")}'
  elif [ -z "$choices$with" ]; then
    case $word in
      -*) choices=$flags ;;
      *) choices=$plain ;;
    esac
  fi
  [ "$with" = = ] && with=''
  COMPREPLY=($(compgen -P "$with" -W "$choices" -- "$word"))
}
complete -o default -F _terse terse ./terse
`;
}

function fishLines(all: readonly (readonly [string, Completions])[]): string[] {
  const of = (name: string) => `complete -c terse -n '__fish_seen_subcommand_from ${name}'`;
  return [
    `complete -c terse -f -n __fish_use_subcommand -a '${all.map(([name]) => name).join(" ")}'`,
    ...all.flatMap(([name, { flags, values, words }]) => [
      ...(words.length > 0 ? [`${of(name)} -a '${words.join(" ")}'`] : []),
      ...[...values]
        .filter(([flag]) => !flag.startsWith("--"))
        .map(
          ([word, after]) =>
            `complete -c terse -f -n '__fish_seen_subcommand_from ${name}; and __fish_prev_arg_in ${word}' -a '${after.join(" ")}'`,
        ),
      ...flags.map((flag) => {
        const choices = values.get(`--${flag.name}`);
        const takes = choices
          ? ` ${flag.name === "recipe" ? "-r" : "-x"} -a '${choices.join(" ")}'`
          : flag.takes
            ? " -r"
            : "";
        return `${of(name)} -l ${flag.name}${takes}`;
      }),
    ]),
  ];
}

export async function completionCommand(argv: readonly string[]): Promise<void> {
  const { words } = parseArguments(argv, { command: "./terse completion", flags: {} });
  const shell = shells.find((each) => each === words[0]);
  if (shell === undefined || words.length > 1)
    throw new OptionsError([
      `${["completion", ...words].join(" ").trim()}: name one of the shells ${shells.join(", ")}: source <(./terse completion bash)`,
    ]);
  process.stdout.write(completionScript(shell));
}
