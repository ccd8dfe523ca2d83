/** The chat template of a tokenizer, found in the files of its folder as transformers finds it. */
import { closeSync, existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { DataError, unreadable } from "../data-error.ts";
import { openRegularFile } from "../regular-file.ts";
import { jsonIfThere } from "../tokenizers/json-file.ts";
import { fileOf } from "../tokenizers/tokenizers.ts";
import { chatml } from "./chatml.ts";

export interface ChatTemplate {
  readonly source: string; // the file that it is from, or its name, for messages
  readonly text: string;
  /** What a template may write by name: bos_token, eos_token, … */
  readonly special: Readonly<Record<string, string>>;
}

const mostBytes = 1 << 20; // the largest known template has 20 kB

/**
 * The template that `named` says: "chatml", the name of one of several templates of the tokenizer's folder, or the path
 * of a file. If absent, the folder's own. Throws `DataError`.
 */
export function chatTemplate(tokenizer: string, named?: string): ChatTemplate {
  const folder = tokenizer === "bytes" || tokenizer === "gpt2" ? undefined : dirname(fileOf(tokenizer));
  const special = folder === undefined ? knownSpecial(tokenizer) : specialTokens(folder);
  const own = folder === undefined ? new Map<string, Found>() : templatesIn(folder);
  const found = own.get(named ?? "default");
  if (found) return { ...found, special };
  if (named === "chatml") return { source: "chatml", text: chatml, special };
  const where = "by data.template in a recipe, by --template for sample and data";
  const remedy = `name chatml, or the path of a template in Jinja (.jinja): ${where}`;
  if (named !== undefined && existsSync(named)) return { source: named, text: textOf(named), special };
  const names = [...own.keys()].join(", ");
  if (named !== undefined)
    throw new DataError(
      `data.template is ${named}, which is no file, and ${tokenizer} has ${own.size === 0 ? "no templates of its own" : `the templates ${names}`}; ${remedy}.`,
    );
  throw new DataError(
    own.size === 0
      ? `${tokenizer} has no chat template (chat_template.jinja, or chat_template in its tokenizer_config.json); ${remedy}.`
      : `${tokenizer} has several chat templates, and none is the default; name one ${where}: ${names}.`,
  );
}

/** The text of the template; undefined where there is none: rows of texts need none. */
export function templateIfAny(tokenizer: string, named?: string): string | undefined {
  try {
    return chatTemplate(tokenizer, named).text;
  } catch (error) {
    if (error instanceof DataError) return undefined;
    throw error;
  }
}

type Found = Pick<ChatTemplate, "source" | "text">;

/** The templates of a folder by name. A file of its own comes before tokenizer_config.json. Throws `DataError`. */
function templatesIn(folder: string): Map<string, Found> {
  const found = new Map<string, Found>();
  const add = (name: string, path: string) => found.set(name, { source: path, text: textOf(path) });
  const more = join(folder, "additional_chat_templates");
  for (const name of existsSync(more) ? readdirSync(more).sort() : [])
    if (name.endsWith(".jinja")) add(basename(name, ".jinja"), join(more, name));
  const own = join(folder, "chat_template.jinja");
  if (existsSync(own)) add("default", own);
  if (found.size > 0) return found;
  const file = join(folder, "tokenizer_config.json");
  const given = (jsonIfThere(file) as { chat_template?: unknown } | null | undefined)?.chat_template;
  const named = typeof given === "string" ? [{ name: "default", template: given }] : given;
  for (const each of Array.isArray(named) ? named : []) {
    const { name, template } = { ...(each as { name?: unknown; template?: unknown }) };
    if (typeof name === "string" && typeof template === "string") found.set(name, { source: file, text: template });
  }
  return found;
}

function textOf(path: string): string {
  const { descriptor, status } = openRegularFile(path);
  try {
    if (status.size > mostBytes)
      throw new DataError(
        `${path} has ${status.size} bytes, and a chat template has at most ${mostBytes}; name another.`,
      );
    return readFileSync(descriptor, "utf8");
  } catch (error) {
    throw error instanceof DataError ? error : unreadable(path, error);
  } finally {
    closeSync(descriptor);
  }
}

const names = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"];

/** The special tokens with a name, of tokenizer_config.json or else of special_tokens_map.json. */
function specialTokens(folder: string): Record<string, string> {
  const special: Record<string, string> = {};
  for (const name of ["special_tokens_map.json", "tokenizer_config.json"]) {
    const said = jsonIfThere(join(folder, name)) as Record<string, unknown> | null | undefined;
    for (const name of names) {
      const value = said?.[name];
      const content = typeof value === "object" && value !== null ? (value as { content?: unknown }).content : value;
      if (typeof content === "string") special[name] = content;
    }
  }
  return special;
}

const knownSpecial = (tokenizer: string): Record<string, string> => {
  const end = "<|endoftext|>";
  return tokenizer === "gpt2" ? { bos_token: end, eos_token: end, unk_token: end } : {};
};
