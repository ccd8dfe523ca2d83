import { type DType, native } from "@terse/native-tensor";
import { handleOf, scope } from "../lifetime.ts";
import { noGrad } from "../no-grad.ts";
import type { Tensor } from "../tensor.ts";
import { Buffer } from "./buffer.ts";
import { Parameter } from "./parameter.ts";

/**
 * The base class of models and layers, as torch.nn.Module. Its parameters, buffers and child modules are its fields, in
 * the order of definition. A subclass has a method `forward`, which is called directly.
 */
export abstract class Module {
  /** Training mode, in which dropout is active and batch normalisation uses the statistics of the batch. */
  training = true;

  train(training = true): this {
    this.training = training;
    for (const [, child] of this.children()) child.train(training);
    return this;
  }

  eval(): this {
    return this.train(false);
  }

  /**
   * All parameters with PyTorch's names: "blocks.0.attention_norm.weight" for the field
   * `blocks[0].attentionNorm.weight`. A module's own parameters precede those of its children. A tied parameter is
   * listed once, under its first name.
   */
  namedParameters(): [name: string, parameter: Parameter][] {
    return this.#named((value) => value instanceof Parameter);
  }

  /** All buffers, named and ordered as parameters are: "bn1.running_mean". */
  namedBuffers(): [name: string, buffer: Buffer][] {
    return this.#named((value) => value instanceof Buffer);
  }

  /** Parameters and buffers, with PyTorch's names: all that a checkpoint stores of the module. */
  stateDict(): [name: string, tensor: Parameter | Buffer][] {
    return this.#named((value) => value instanceof Parameter || value instanceof Buffer);
  }

  /**
   * Copies the tensors of a state, by their names, into parameters and buffers; devices and dtypes stay. Throws, and
   * changes nothing, where names are missing or unexpected, or shapes differ; without `strict`, only where shapes
   * differ. Returns the names that were left out.
   */
  loadStateDict(
    state: Iterable<readonly [name: string, tensor: Tensor]>,
    { strict = true }: { strict?: boolean } = {},
  ): { missingKeys: string[]; unexpectedKeys: string[] } {
    if (typeof state !== "object" || state === null || !(Symbol.iterator in state))
      throw new TypeError(
        "loadStateDict: a state is pairs of a name and a tensor; give stateDict() of another module, a Map, or Object.entries({ name: tensor })",
      );
    const [own, given] = [new Map(this.stateDict()), new Map(state)];
    const missingKeys = [...own.keys()].filter((name) => !given.has(name));
    const unexpectedKeys = [...given.keys()].filter((name) => !own.has(name));
    const both = [...own].flatMap(([name, to]) => (given.has(name) ? [{ name, to, from: given.get(name)! }] : []));
    const problems = [
      ...(strict ? missingKeys.map((name) => `${name} is missing`) : []),
      ...(strict ? unexpectedKeys.map((name) => `${name} is unexpected`) : []),
      ...both
        .filter(({ to, from }) => to.shape.join() !== from.shape.join())
        .map(({ name, to, from }) => `${name} is [${from.shape.join(", ")}] there and [${to.shape.join(", ")}] here`),
    ];
    const more = problems.length - mostProblems;
    if (problems.length > 0)
      throw new Error(
        `loadStateDict: the state does not fit ${this.constructor.name}: ${problems.slice(0, mostProblems).join("; ")}${more > 0 ? `; and ${more} more` : ""}`,
      );
    noGrad(() => {
      for (const { to, from } of both) to.copy_(from);
    });
    return { missingKeys, unexpectedKeys };
  }

  #named<T extends Tensor>(wanted: (value: unknown) => value is T): [name: string, tensor: T][] {
    const seen = new Set<unknown>();
    const found: [string, T][] = [];
    const inLists: { name: string; of: Module; element: unknown }[] = [];
    const walk = (module: Module, prefix: string) => {
      for (const [field, value] of Object.entries(module)) {
        const name = prefix + snakeCase(field);
        for (const element of listed(value)) inLists.push({ name, of: module, element });
        if (!wanted(value) || seen.has(value)) continue;
        seen.add(value);
        found.push([name, value]);
      }
      for (const [name, child] of module.children()) {
        seen.add(child);
        walk(child, `${prefix}${name}.`);
      }
    };
    walk(this, "");
    const lost = inLists.find(({ element }) => (element instanceof Module || wanted(element)) && !seen.has(element));
    if (lost)
      throw new Error(
        `${lost.of.constructor.name}: ${lost.name} is a list with a ${(lost.element as object).constructor.name}, which would not be trained or saved; make it a ModuleList, or a field of its own`,
      );
    return found;
  }

  parameters(): Parameter[] {
    return this.namedParameters().map(([, parameter]) => parameter);
  }

  /** Number of elements in all parameters; a tied parameter counts once. */
  parameterCount(): number {
    return this.parameters().reduce((sum, parameter) => sum + parameter.length, 0);
  }

  /** The modules in its fields, with their names on disk. */
  children(): [name: string, module: Module][] {
    return Object.entries(this)
      .filter((entry): entry is [string, Module] => entry[1] instanceof Module)
      .map(([field, module]) => [snakeCase(field), module]);
  }

  /**
   * Moves every parameter and buffer to another device or dtype, and drops gradients. Buffers of integers keep their
   * dtype. Throws if a parameter is in an arena.
   */
  to(target: { dtype?: DType; device?: string } | DType): this {
    for (const [name, parameter] of this.namedParameters()) {
      if (parameter.inArena)
        throw new Error(`to: ${name} is in an arena, which to() cannot move; call to() before the arena is made`);
      scope(() => {
        parameter.grad = null;
        native.setData(handleOf(parameter), handleOf(parameter.to(target)));
      });
    }
    const { dtype, device } = typeof target === "string" ? { dtype: target, device: undefined } : target;
    for (const [, buffer] of this.namedBuffers()) {
      const converted = floating.includes(buffer.dtype) && dtype !== undefined;
      const wanted = { ...(converted && { dtype }), ...(device !== undefined && { device }) };
      scope(() => native.setData(handleOf(buffer), handleOf(buffer.to(wanted))));
    }
    return this;
  }

  /** requiresGrad_(false) freezes all parameters: they get no gradient. */
  requiresGrad_(wanted = true): this {
    for (const parameter of this.parameters()) parameter.requiresGrad = wanted;
    return this;
  }

  /** Frees all parameters, their gradients and all buffers. */
  dispose(): void {
    for (const [, tensor] of this.stateDict()) tensor.dispose();
  }
}

const mostProblems = 10; // in a message
const floating: readonly DType[] = ["f16", "bf16", "f32", "f64"];

/** The elements of a field that is an array, a map, a set or a plain object. */
function listed(value: unknown): Iterable<unknown> {
  if (Array.isArray(value) || value instanceof Set) return value;
  if (value instanceof Map) return value.values();
  const isPlain = typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
  return isPlain ? Object.values(value) : [];
}

/** attentionNorm → attention_norm, fc1 → fc1, RMSNorm → rms_norm */
export function snakeCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .replace(/([A-Z])([A-Z][a-z])/g, "$1_$2")
    .toLowerCase();
}
