/**
 * Hugging Face's Jinja in JavaScript, with types: those of the package name modules that TypeScript does not find.
 * MiniJinja in WebAssembly (minijinja-js 2.11) was tried in its place: of the 75 templates of as-in-jinja.test.ts it
 * writes 24 as transformers does.
 */
import * as library from "@huggingface/jinja";

/** A part of a parsed template: a statement or an expression. */
export interface Node {
  readonly type: string;
  readonly [key: string]: unknown;
}

export interface Token {
  readonly type: string;
  readonly value: string;
}

export interface Value {
  readonly type: string;
  readonly value: unknown;
  /** Whether it is true in an {% if %}. */
  __bool__(): { readonly value: boolean };
  toString(): string;
}

/** Variables by their names, and those around them. */
export interface Scope {
  readonly variables: ReadonlyMap<string, Value>; // its own
  set(name: string, value: unknown): Value;
  setVariable(name: string, value: Value): Value;
  lookupVariable(name: string): Value;
}

interface Interpreting {
  readonly global: Scope;
  run(program: Node): Value;
  evaluate(node: Node | undefined, scope: Scope): Value;
  /** Arguments by their places, and by their names. */
  evaluateArguments(args: readonly Node[], scope: Scope): [Value[], Map<string, Value>];
  /** What the statements of a block write, as a text. */
  evaluateBlock(body: readonly Node[], scope: Scope): Value;
}

interface Library {
  readonly Environment: new (around?: Scope) => Scope;
  readonly Interpreter: new (scope: Scope) => Interpreting;
  parse(tokens: readonly Token[]): { readonly type: string; readonly body: Node[] };
  tokenize(template: string, blanks: { readonly lstrip_blocks: boolean; readonly trim_blocks: boolean }): Token[];
}

export const { Environment, Interpreter, parse, tokenize } = library as unknown as Library;
