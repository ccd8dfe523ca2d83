/**
 * Hugging Face's Jinja in JavaScript, with what differs from Jinja in Python put right, because chat templates are
 * written for that: values are written and compared as in Python, a text is joined with texts alone, letters of a text
 * can be looped over, and an iteration has variables of its own and keeps what it has written before it ends early.
 */
import { Environment, Interpreter, type Node, type Scope, type Value } from "./jinja.ts";
import { equal, isList, str, typeName } from "./python-values.ts";

/** What `{% break %}` and `{% continue %}` throw, with what the iteration has written so far. */
class IterationEnd extends Error {
  readonly isLast: boolean;
  written = "";

  constructor(isLast: boolean) {
    super("{% break %} or {% continue %} is in no loop");
    this.isLast = isLast;
  }
}

/** Statements that write nothing. */
const silent = ["Set", "Macro", "Comment"];

/** The library's node of a value that is known already. */
const known = (value: Value): Node => ({ type: "Value", value });

export class PythonInterpreter extends Interpreter {
  /** The bodies of loops: an iteration is an evaluation of one. */
  readonly #bodies = new Set<readonly Node[]>();
  /** The scopes of loops that end before their next iteration. */
  readonly #ending = new WeakSet<Scope>();

  constructor(environment: Scope) {
    super(environment);
    this.evaluateBlock = (body, scope) => this.#text(this.#block(body, scope));
  }

  override evaluate(node: Node | undefined, scope: Scope): Value {
    switch (node?.type) {
      case "Value":
        return node["value"] as Value;
      case "Break":
      case "Continue":
        throw new IterationEnd(node.type === "Break");
      case "BinaryExpression":
        return this.#binary(node, scope);
      case "FilterExpression":
        return this.#filtered(node, scope);
      case "For":
        return this.#loop(node, scope);
      default:
        return super.evaluate(node, scope);
    }
  }

  /** What the statements of a block write. */
  #block(body: readonly Node[], scope: Scope): string {
    const isIteration = this.#bodies.has(body);
    if (isIteration && this.#ending.has(scope)) super.evaluate({ type: "Break" }, scope); // throws
    const own = isIteration ? new Environment(scope) : scope;
    let written = "";
    try {
      for (const node of body) {
        const value = this.evaluate(node, own);
        if (!silent.includes(node.type)) written += str(value);
      }
    } catch (error) {
      if (!(error instanceof IterationEnd)) throw error;
      error.written = written + error.written;
      if (!isIteration) throw error;
      if (error.isLast) this.#ending.add(scope);
      return error.written;
    }
    return written;
  }

  #loop(node: Node, scope: Scope): Value {
    this.#bodies.add(node["body"] as readonly Node[]);
    const iterable = node["iterable"] as Node;
    const isFiltered = iterable.type === "SelectExpression"; // for x in xs if …
    const over = known(this.#items(this.evaluate(isFiltered ? (iterable["lhs"] as Node) : iterable, scope)));
    return super.evaluate({ ...node, iterable: isFiltered ? { ...iterable, lhs: over } : over } as Node, scope);
  }

  /** A text as its letters, and what is undefined as nothing. */
  #items(value: Value): Value {
    const letters =
      typeof value.value === "string" ? [...value.value] : value.type === "UndefinedValue" ? [] : undefined;
    return letters ? this.#list(letters.map((letter) => this.#text(letter))) : value;
  }

  #binary(node: Node, scope: Scope): Value {
    const operator = (node["operator"] as { value: string }).value;
    if (operator === "and" || operator === "or") return super.evaluate(node, scope); // the right one only where needed
    const [left, right] = [node["left"], node["right"]].map((side) => this.evaluate(side as Node, scope)) as [
      Value,
      Value,
    ];
    const answer = (value: boolean) =>
      super.evaluate({ type: "Identifier", value: String(value) } as Node, this.global);
    switch (operator) {
      case "~":
        return this.#text(str(left) + str(right));
      case "==":
        return answer(equal(left, right));
      case "!=":
        return answer(!equal(left, right));
      case "+":
        for (const [text, other] of [
          [left, right],
          [right, left],
        ] as const)
          if (text.type === "StringValue" && other.type !== "StringValue" && other.type !== "UndefinedValue")
            throw new Error(`can only concatenate str (not "${typeName(other)}") to str`);
        break;
      case "in":
      case "not in":
        if (isList(right)) return answer(right.value.some((each) => equal(each, left)) === (operator === "in"));
    }
    return super.evaluate({ ...node, left: known(left), right: known(right) } as Node, scope);
  }

  #filtered(node: Node, scope: Scope): Value {
    const filter = node["filter"] as Node & { callee?: { value: unknown } };
    let operand = this.evaluate(node["operand"] as Node, scope);
    const name = filter.callee?.value ?? filter["value"];
    if (name === "string") return this.#text(str(operand));
    if (name === "length" && typeof operand.value === "string")
      return super.evaluate({ type: "IntegerLiteral", value: [...operand.value].length }, scope);
    if (name === "join" && isList(operand)) operand = this.#list(operand.value.map((each) => this.#text(str(each))));
    return super.evaluate({ ...node, operand: known(operand) } as Node, scope);
  }

  #text(value: string): Value {
    return super.evaluate({ type: "StringLiteral", value } as Node, this.global);
  }

  #list(items: readonly Value[]): Value {
    return super.evaluate({ type: "ArrayLiteral", value: items.map(known) } as Node, this.global);
  }
}
