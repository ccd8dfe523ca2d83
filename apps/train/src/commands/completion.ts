/** `./terse completion bash|zsh|fish`: prints what makes a shell complete commands, recipe keys and the names of recipes. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { listOptions, OptionsError, parseArguments } from "@terse/options";
import { recipeSchema } from "../recipe.ts";

const shells = ["bash", "zsh", "fish"] as const;

type Shell = (typeof shells)[number];

const read = (path: string) => readFileSync(fileURLToPath(new URL(path, import.meta.url)), "utf8");

/** What can be completed: commands, flags of train, keys of recipes, and names of recipes. */
export function completions(): { commands: string[]; flags: string[]; recipes: string[] } {
  const commands = [...read("../../../../tools/help.txt").matchAll(/^ {2}\.\/terse ([a-z]+)/gm)].map(
    ([, name]) => name!,
  );
  const [train] = read("../help.txt").split("\nsample:\n") as [string];
  const own = [...train.matchAll(/^ {2}--([a-z-]+)/gm)].map(([, name]) => name!);
  const keys = listOptions(recipeSchema).map(({ name }) => name);
  return {
    commands: [...new Set(commands)],
    flags: [...new Set([...own, ...keys])].map((name) => `--${name}`),
    recipes: readdirSync(fileURLToPath(new URL("../../recipes", import.meta.url)))
      .filter((name) => name.endsWith(".yaml"))
      .map((name) => name.slice(0, -".yaml".length)),
  };
}

/** The script for one shell. Its function is called with words that have no quotes or blanks in them. */
export function completionScript(shell: Shell): string {
  const { commands, flags, recipes } = completions();
  const [c, f, r] = [commands, flags, recipes].map((words) => words.join(" "));
  if (shell === "fish")
    return `complete -c terse -f -n __fish_use_subcommand -a '${c}'
complete -c terse -f -n '__fish_seen_subcommand_from train; and __fish_prev_arg_in --recipe' -a '${r}'
complete -c terse -F -n '__fish_seen_subcommand_from train; and not __fish_prev_arg_in --recipe' -a '${f}'
complete -c terse -F -n '__fish_seen_subcommand_from advise compare export page sample'
`;
  const compatible =
    shell === "zsh" ? "autoload -U +X compinit && compinit -u\nautoload -U +X bashcompinit && bashcompinit\n" : "";
  return `${compatible}_terse() {
  local word=\${COMP_WORDS[COMP_CWORD]} before=\${COMP_WORDS[COMP_CWORD-1]} words=''
  if [ "$COMP_CWORD" -eq 1 ]; then words='${c}'
  elif [ "$before" = --recipe ]; then words='${r}'
  elif [ "\${COMP_WORDS[1]}" = train ]; then words='${f}'
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}
complete -o default -F _terse terse ./terse
`;
}

export async function completionCommand(argv: readonly string[]): Promise<void> {
  const { words } = parseArguments(argv, { command: "./terse completion", flags: {} });
  const shell = shells.find((each) => each === words[0]);
  if (shell === undefined || words.length > 1)
    throw new OptionsError([
      `completion ${words.join(" ")}: the shells are ${shells.join(", ")}; source <(./terse completion bash)`,
    ]);
  process.stdout.write(completionScript(shell));
}
