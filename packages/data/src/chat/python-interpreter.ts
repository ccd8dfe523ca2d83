/**
 * Hugging Face's Jinja in JavaScript, with what differs from Jinja in Python put right, because chat templates are
 * written for that: values are written and compared as in Python, a text is joined with texts alone, letters of a text
 * can be looped over, and an iteration has variables of its own and keeps what it has written before it ends early.
 */
import { Environment, Interpreter, type Node, type Scope, type Value } from "./jinja.ts";
import { json, jsonOptions } from "./python-json.ts";
import { ofFloats, ofIntegers } from "./python-numbers.ts";
import { capitalize, strip } from "./python-strings.ts";
import { equal, float, integer, isList, list, numberIn, str, text, truth, typeName } from "./python-values.ts";

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

const ofTexts = {
  strip: (text: string, letters?: string) => strip(text, "strip", letters),
  lstrip: (text: string, letters?: string) => strip(text, "lstrip", letters),
  rstrip: (text: string, letters?: string) => strip(text, "rstrip", letters),
  capitalize,
} as const;
const isOfTexts = (name: unknown): name is keyof typeof ofTexts => Object.hasOwn(ofTexts, String(name));

/** A variable or a key in words. */
const nameOf = (node: Node): string => {
  const { value } = (node["property"] ?? node) as { value?: unknown };
  return typeof value === "string" ? `'${value}'` : "what a key is asked of";
};

/** What an operator makes of two numbers; undefined where they are none, or it is no operator of theirs. */
function ofNumbers(operator: string, left: Value, right: Value): Value | undefined {
  const [a, b] = [numberIn(left), numberIn(right)];
  if (a === undefined || b === undefined) return undefined;
  const compare = comparisons[operator];
  if (compare) return truth(compare(a, b));
  if (!Object.hasOwn(ofFloats, operator)) return undefined;
  const dividesByZero = Number(b) === 0 && ["/", "//", "%"].includes(operator);
  if (dividesByZero || (operator === "**" && Number(a) === 0 && b < 0)) throw new Error("division by zero");
  const whole = operator === "**" && b < 0 ? undefined : ofIntegers[operator];
  if (whole && left.type !== "FloatValue" && right.type !== "FloatValue") return integer(whole(BigInt(a), BigInt(b)));
  const result = ofFloats[operator]!(Number(a), Number(b));
  if (Number.isNaN(result) && operator === "**") throw new Error("a root of a negative number is a complex number");
  return float(result);
}

const comparisons: Readonly<Record<string, (a: number | bigint, b: number | bigint) => boolean>> = {
  "<": (a, b) => a < b,
  "<=": (a, b) => a <= b,
  ">": (a, b) => a > b,
  ">=": (a, b) => a >= b,
};

export class PythonInterpreter extends Interpreter {
  /** The bodies of loops: an iteration is an evaluation of one. */
  readonly #bodies = new Set<readonly Node[]>();
  /** The scopes of loops that end before their next iteration. */
  readonly #ending = new WeakSet<Scope>();

  constructor(environment: Scope) {
    super(environment);
    this.evaluateBlock = (body, scope) => text(this.#block(body, scope));
  }

  override evaluate(node: Node | undefined, scope: Scope): Value {
    switch (node?.type) {
      case "Value":
        return node["value"] as Value;
      case "Break":
      case "Continue":
        throw new IterationEnd(node.type === "Break");
      case "IntegerLiteral":
        return integer(BigInt(node["value"] as number));
      case "Identifier":
        return /^[+-]?\d/.test(node["value"] as string) // exactNumbers()
          ? integer(BigInt(node["value"] as string))
          : super.evaluate(node, scope);
      case "UnaryExpression":
        return this.#unary(node, scope);
      case "MemberExpression":
        return this.#member(node, scope);
      case "CallExpression":
        return this.#call(node, scope);
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
    return letters ? list(letters.map((letter) => text(letter))) : value;
  }

  /** What is undefined has no members, and a letter of a text may be two units of UTF-16. */
  #member(node: Node, scope: Scope): Value {
    const object = this.evaluate(node["object"] as Node, scope);
    if (object.type === "UndefinedValue") throw new Error(`${nameOf(node["object"] as Node)} is undefined`);
    const property = node["property"] as Node;
    const isPlace = node["computed"] === true && property.type !== "SliceExpression";
    if (!isPlace || object.type !== "StringValue")
      return super.evaluate({ ...node, object: known(object) } as Node, scope);
    const place = this.evaluate(property, scope);
    const letter = place.type === "IntegerValue" ? [...str(object)].at(place.value as number) : undefined;
    if (letter !== undefined) return text(letter);
    return super.evaluate({ ...node, object: known(object), property: known(place) } as Node, scope);
  }

  #call(node: Node, scope: Scope): Value {
    const callee = node["callee"] as Node;
    const { value: method } = { ...(callee["property"] as Node | undefined) } as { value?: unknown };
    if (callee.type !== "MemberExpression" || callee["computed"] === true || !isOfTexts(method))
      return super.evaluate(node, scope);
    const object = this.evaluate(callee["object"] as Node, scope);
    if (object.type !== "StringValue")
      return super.evaluate({ ...node, callee: { ...callee, object: known(object) } } as Node, scope);
    return text(ofTexts[method](str(object), this.#letters(node["args"] as readonly Node[], scope)));
  }

  /** The letters that an argument of strip names; undefined where it names none. */
  #letters([argument]: readonly Node[], scope: Scope): string | undefined {
    const letters = argument && this.evaluate(argument, scope);
    return letters === undefined || letters.type === "NullValue" ? undefined : str(letters);
  }

  #unary(node: Node, scope: Scope): Value {
    const operator = (node["operator"] as { value: string }).value;
    const value = this.evaluate(node["argument"] as Node, scope);
    const number = numberIn(value);
    if (operator === "not") return truth(!value.__bool__().value);
    if (number === undefined) throw new Error(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    if (value.type === "FloatValue") return float(operator === "-" ? -Number(number) : Number(number));
    return integer(operator === "-" ? -BigInt(number) : BigInt(number));
  }

  #binary(node: Node, scope: Scope): Value {
    const operator = (node["operator"] as { value: string }).value;
    if (operator === "and" || operator === "or") return super.evaluate(node, scope); // the right one only where needed
    const left = this.evaluate(node["left"] as Node, scope);
    const right = this.evaluate(node["right"] as Node, scope);
    const bothWays = [
      [left, right],
      [right, left],
    ] as const;
    const numbers = ofNumbers(operator, left, right);
    if (numbers) return numbers;
    switch (operator) {
      case "~":
        return text(str(left) + str(right));
      case "==":
        return truth(equal(left, right));
      case "!=":
        return truth(!equal(left, right));
      case "+":
        for (const [text, other] of bothWays)
          if (text.type === "StringValue" && other.type !== "StringValue" && other.type !== "UndefinedValue")
            throw new Error(`can only concatenate str (not "${typeName(other)}") to str`);
        break;
      case "*":
        for (const [repeated, times] of bothWays)
          if (repeated.type === "StringValue" && times.type === "IntegerValue")
            return text(str(repeated).repeat(Math.max(0, times.value as number)));
        break;
      case "in":
      case "not in":
        if (isList(right)) return truth(right.value.some((each) => equal(each, left)) === (operator === "in"));
    }
    return super.evaluate({ ...node, left: known(left), right: known(right) } as Node, scope);
  }

  #filtered(node: Node, scope: Scope): Value {
    const filter = node["filter"] as Node & { callee?: { value: unknown } };
    let operand = this.evaluate(node["operand"] as Node, scope);
    const name = filter.callee?.value ?? filter["value"];
    const args = () => this.evaluateArguments((filter["args"] ?? []) as Node[], scope);
    if (name === "tojson") return text(json(operand, jsonOptions(...args())));
    if (name === "string") return text(str(operand));
    if (typeof operand.value === "string") {
      const letters = [...operand.value];
      if (name === "length") return integer(BigInt(letters.length));
      if (name === "list") return list(letters.map((letter) => text(letter)));
      if (name === "reverse") return text(letters.reverse().join(""));
      if (name === "capitalize") return text(capitalize(operand.value));
      if (name === "trim")
        return text(strip(operand.value, "strip", this.#letters((filter["args"] ?? []) as Node[], scope)));
    }
    if (name === "join" && isList(operand)) operand = list(operand.value.map((each) => text(str(each))));
    return super.evaluate({ ...node, operand: known(operand) } as Node, scope);
  }
}
