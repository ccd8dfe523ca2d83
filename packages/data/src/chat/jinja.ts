/** Hugging Face's Jinja in JavaScript, with types: those of the package name modules that TypeScript does not find. */
import * as library from "@huggingface/jinja";

/** A part of a parsed template: a statement or an expression. */
export interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface Value {
  readonly type: string;
  readonly value: unknown;
  toString(): string;
}

/** Variables by their names, and those around them. */
export interface Scope {
  set(name: string, value: unknown): Value;
}

interface Interpreting {
  readonly global: Scope;
  run(program: Node): Value;
  evaluate(node: Node | undefined, scope: Scope): Value;
  /** What the statements of a block write, as a text. */
  evaluateBlock(body: readonly Node[], scope: Scope): Value;
}

interface Library {
  readonly Environment: new (around?: Scope) => Scope;
  readonly Interpreter: new (scope: Scope) => Interpreting;
  parse(tokens: unknown): { readonly type: string; readonly body: Node[] };
  tokenize(template: string, blanks: { readonly lstrip_blocks: boolean; readonly trim_blocks: boolean }): unknown;
}

export const { Environment, Interpreter, parse, tokenize } = library as unknown as Library;
