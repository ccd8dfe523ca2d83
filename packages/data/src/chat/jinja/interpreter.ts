/**
 * Hugging Face's Jinja in JavaScript, with what differs from Jinja in Python put right, because chat templates are
 * written for that: the parser and the statements are the library's; values, operators, filters, tests, methods and
 * loops are Python's.
 */

import { filtered } from "./filters.ts";
import { Environment, Interpreter, type Node, type Scope, type Value } from "./library.ts";
import { methodOf } from "./methods.ts";
import { NotKnown } from "./not-known.ts";
import { operate } from "./operators.ts";
import { isTrueOf } from "./tests.ts";
import { asTuple, ofWith } from "./tokens.ts";
import {
  callable,
  dict,
  float,
  integer,
  isMap,
  isSequence,
  isTrue,
  itemsOf,
  list,
  nothing,
  numberIn,
  str,
  text,
  truth,
  tuple,
  typeName,
} from "./values.ts";

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

/** A variable or a key in words. */
const nameOf = (node: Node): string => {
  const { value } = (node["property"] ?? node) as { value?: unknown };
  return typeof value === "string" ? `'${value}'` : "what a key is asked of";
};

export class PythonInterpreter extends Interpreter {
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
        return this.#filtered(node["filter"] as Node, this.evaluate(node["operand"] as Node, scope), scope);
      case "FilterStatement":
        return this.#filtered(node["filter"] as Node, this.evaluateBlock(node["body"] as Node[], scope), scope);
      case "TestExpression": {
        const { value: name } = node["test"] as Node & { value: string };
        return truth(isTrueOf(name, this.evaluate(node["operand"] as Node, scope), []) !== node["negate"]);
      }
      case "Macro":
        return this.#macro(node, scope);
      case "For":
        return text(this.#loop(node, scope));
      default:
        return super.evaluate(node, scope);
    }
  }

  /** What the statements of a block write. */
  #block(body: readonly Node[], scope: Scope): string {
    let written = "";
    try {
      for (const node of body) {
        const value = this.evaluate(node, scope);
        if (!silent.includes(node.type)) written += str(value);
      }
    } catch (error) {
      if (error instanceof IterationEnd) error.written = written + error.written;
      throw error;
    }
    return written;
  }

  /** A macro sees the variables where it is written, and not those where it is called, but for the caller itself. */
  #macro(node: Node, scope: Scope): Value {
    const nothing = super.evaluate(node, scope);
    const macro = scope.lookupVariable((node["name"] as { value: string }).value);
    const call = macro.value as (args: readonly Value[], scope: Scope) => Value;
    const value = (args: readonly Value[], from: Scope) => {
      const own = new Environment(scope);
      const caller = from.variables.get("caller");
      if (caller) own.setVariable("caller", caller);
      return call(args, own);
    };
    Object.assign(macro, { value });
    return nothing;
  }

  /** An iteration has variables of its own. */
  #loop(node: Node, scope: Scope): string {
    const [iterable, target, body] = [node["iterable"] as Node, node["loopvar"] as Node, node["body"] as Node[]];
    const [{ value: first } = target] = target.type === "TupleLiteral" ? (target["value"] as Node[]) : [target];
    if (first === ofWith) {
      const own = new Environment(scope);
      unpack(target, target.type === "TupleLiteral" ? this.evaluate(iterable, scope) : nothing, own);
      return this.#block(body, own);
    }
    const isFiltered = iterable.type === "SelectExpression"; // for x in xs if …
    const over = this.evaluate(isFiltered ? (iterable["lhs"] as Node) : iterable, scope);
    const scopeOf = (value: Value) => {
      const own = new Environment(scope);
      unpack(target, value, own);
      return own;
    };
    const items = itemsOf(over).filter(
      (value) => !isFiltered || isTrue(this.evaluate(iterable["test"] as Node, scopeOf(value))),
    );
    let written = "";
    let hasEnded = false; // an iteration, not by {% break %} or {% continue %}: else Jinja goes on with {% else %}
    for (const [i, value] of items.entries()) {
      const own = scopeOf(value);
      own.setVariable("loop", facts(items, i));
      try {
        written += this.#block(body, own);
        hasEnded = true;
      } catch (error) {
        if (!(error instanceof IterationEnd)) throw error;
        written += error.written;
        if (error.isLast) break;
      }
    }
    return hasEnded ? written : written + this.#block(node["defaultBlock"] as Node[], new Environment(scope));
  }

  /** What is undefined has no members. A name behind a point is first that of a method, one in brackets that of a key. */
  #member(node: Node, scope: Scope): Value {
    const object = this.evaluate(node["object"] as Node, scope);
    if (object.type === "UndefinedValue") throw new Error(`${nameOf(node["object"] as Node)} is undefined`);
    const property = node["property"] as Node;
    if (property.type === "SliceExpression") return this.#slice(object, property, scope);
    const isName = node["computed"] !== true && property.type === "Identifier";
    const key = isName ? text(property["value"] as string) : this.evaluate(property, scope);
    if (typeof key.value !== "string") {
      const place = numberIn(key);
      const isPlain = typeof object.value === "string" || isSequence(object);
      if (!isPlain || place === undefined || key.type === "FloatValue") return nothing;
      return itemsOf(object).at(Number(place)) ?? nothing;
    }
    const own = isMap(object)
      ? object.value.get(key.value)
      : (object as { members?: Map<string, Value> }).members?.get(key.value);
    const method = () => {
      const found = methodOf(object, key.value as string);
      return found && callable(found);
    };
    return (isName ? (method() ?? own) : (own ?? method())) ?? nothing;
  }

  #slice(object: Value, slice: Node, scope: Scope): Value {
    const isText = typeof object.value === "string";
    if (!isText && !isSequence(object)) return nothing;
    const [from, to, step] = ["start", "stop", "step"].map((name) => {
      const place = numberIn(this.evaluate(slice[name] as Node | undefined, scope));
      return place === undefined ? undefined : Number(place);
    });
    const items = sliced(itemsOf(object), from, to, step);
    return isText ? text(items.map(str).join("")) : object.type === "TupleValue" ? tuple(items) : list(items);
  }

  #call(node: Node, scope: Scope): Value {
    const callee = node["callee"] as Node;
    const called = this.evaluate(callee, scope);
    if (called.type === "FunctionValue") return super.evaluate({ ...node, callee: known(called) } as Node, scope);
    const { value: name } = (callee["property"] ?? callee) as { value?: unknown };
    const what =
      callee.type === "MemberExpression"
        ? `the method '${name}' of a ${typeName(this.evaluate(callee["object"] as Node, scope))}`
        : `the function '${name}'`;
    throw new NotKnown(what, String(name));
  }

  #unary(node: Node, scope: Scope): Value {
    const operator = (node["operator"] as { value: string }).value;
    const value = this.evaluate(node["argument"] as Node, scope);
    const number = numberIn(value);
    if (operator === "not") return truth(!isTrue(value));
    if (number === undefined) throw new Error(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    if (value.type === "FloatValue") return float(operator === "-" ? -Number(number) : Number(number));
    return integer(operator === "-" ? -BigInt(number) : BigInt(number));
  }

  #binary(node: Node, scope: Scope): Value {
    const { value: operator } = node["operator"] as { value: string };
    const [left, right] = [node["left"] as Node, node["right"] as Node];
    const first = this.evaluate(left, scope);
    if (operator === "and" || operator === "or")
      return isTrue(first) === (operator === "and") ? this.evaluate(right, scope) : first;
    const [, chained] = /^and (.+)/.exec(operator) ?? []; // a < b < c: withChains()
    if (chained === undefined) return operate(operator, first, this.evaluate(right, scope));
    if (!isTrue(first)) return first;
    return operate(chained, this.evaluate(left["right"] as Node, scope), this.evaluate(right, scope));
  }

  #filtered(filter: Node, value: Value, scope: Scope): Value {
    const { value: name } = (filter["callee"] ?? filter) as { value: string };
    const [args, named] = this.evaluateArguments((filter["args"] ?? []) as Node[], scope);
    if (name === asTuple) return tuple(itemsOf(value));
    const [, not, test] = /^is (not )?(.+)/.exec(name) ?? []; // testsAsFilters()
    if (test === undefined) return filtered(name, value, args, named);
    return truth(isTrueOf(test, value, args) !== (not !== undefined));
  }
}

/** Sets the variables of a loop. */
function unpack(target: Node, value: Value, scope: Scope): void {
  if (target.type === "Identifier") {
    scope.setVariable(target["value"] as string, value);
    return;
  }
  const [names, values] = [target["value"] as readonly Node[], itemsOf(value)];
  if (names.length !== values.length)
    throw new Error(`a loop has ${names.length} variables, and an item of it ${values.length} values`);
  for (const [i, name] of names.entries()) unpack(name, values[i]!, scope);
}

/** The variable `loop`. */
const facts = (items: readonly Value[], i: number): Value => {
  const { length } = items;
  const counts = {
    index: i + 1,
    index0: i,
    revindex: length - i,
    revindex0: length - i - 1,
    length,
    depth: 1,
    depth0: 0,
  };
  return dict([
    ...Object.entries(counts).map(([name, count]) => [name, integer(BigInt(count))] as const),
    ["first", truth(i === 0)],
    ["last", truth(i === length - 1)],
    ["previtem", items[i - 1] ?? nothing],
    ["nextitem", items[i + 1] ?? nothing],
    ["cycle", callable((args) => args[i % args.length] ?? nothing)],
  ]);
};

/** list[from:to:step] */
function sliced(items: readonly Value[], from: number | undefined, to: number | undefined, step = 1): Value[] {
  if (step === 0) throw new Error("slice step cannot be zero");
  const { length } = items;
  const [least, most] = step > 0 ? [0, length] : [-1, length - 1];
  const within = (place: number) => Math.min(Math.max(place < 0 ? place + length : place, least), most);
  const begin = from === undefined ? (step > 0 ? 0 : length - 1) : within(from);
  const end = to === undefined ? (step > 0 ? length : -1) : within(to);
  const found: Value[] = [];
  for (let at = begin; step > 0 ? at < end : at > end; at += step) found.push(items[at]!);
  return found;
}
