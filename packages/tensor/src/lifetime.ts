/**
 * When tensors are freed. The garbage collector sees only a handle of a few bytes, so it would free gigabytes too late.
 * Therefore the scope in which a tensor was created frees it. A tensor without a scope, or one that is kept, is freed
 * by dispose(), or by the garbage collector.
 */
import { AsyncLocalStorage } from "node:async_hooks";
import { type Handle, native } from "@terse/native-tensor";
import { isPromise } from "./synchronous.ts";

// Each asynchronous context has its own scope: with one global stack, interleaved async scopes would mix their tensors.
const owner = new AsyncLocalStorage<Scope>();

class Scope {
  readonly parent: Scope | undefined;
  owned: Resource[] = [];
  open = true;

  constructor(parent: Scope | undefined) {
    this.parent = parent;
  }
}

/**
 * The scope for tensors that are created now. Work that outlives its scope uses the next enclosing scope that is open.
 */
function currentScope(): Scope | undefined {
  let scope = owner.getStore();
  while (scope !== undefined && !scope.open) scope = scope.parent;
  return scope;
}

const forgotten = new FinalizationRegistry<Handle>((handle) => native.dispose(handle));

let handleIn: (resource: Resource) => Handle;
let close: (scope: Scope, survivors: Set<Resource> | undefined) => void;
let free: (resource: Resource) => void;
let moveOut: (resource: Resource) => void;

// A clone has only the enumerable own properties, so that of a tensor would be {}. Reading this one throws instead.
const uncloneable: PropertyDescriptor = {
  enumerable: true,
  get() {
    throw new TypeError(
      "a tensor cannot be cloned, posted to another thread or written as JSON, because its memory belongs to this thread; give await x.toTypedArray() instead, and make a tensor from that with fromTypedArray()",
    );
  },
};

/** A handle and the scope that owns it: the base of Tensor. */
export class Resource {
  #handle: Handle;
  #scope: Scope | undefined;

  constructor(handle: Handle) {
    this.#handle = handle;
    Object.defineProperty(this, "memory", uncloneable);
    const scope = currentScope();
    this.#scope = scope;
    if (scope === undefined) this.#collectGarbage();
    else scope.owned.push(this);
  }

  /** Lets the garbage collector free it. */
  #collectGarbage(): void {
    native.keep(this.#handle);
    forgotten.register(this, this.#handle, this);
  }

  static {
    handleIn = (resource) => {
      try {
        return resource.#handle;
      } catch {
        throw new TypeError(
          `expected a tensor (or a number, where the method takes one), got ${described(resource)}; tensor() and fromTypedArray() make tensors`,
        );
      }
    };

    close = (scope, survivors) => {
      scope.open = false;
      const { owned } = scope;
      // A timer that was started in the scope keeps the scope alive, and must not keep its tensors alive.
      scope.owned = [];
      const outer = currentScope();
      const handles = new Float64Array(owned.length);
      let count = 0;
      for (const resource of owned) {
        if (resource.#scope !== scope) continue; // kept, disposed or moved
        if (survivors?.has(resource)) {
          resource.#scope = outer;
          if (outer === undefined) resource.#collectGarbage();
          else outer.owned.push(resource);
        } else {
          handles[count++] = resource.#handle;
        }
      }
      if (count > 0) native.disposeAll(handles, count);
    };

    free = (resource) => {
      if (resource.#scope === undefined) forgotten.unregister(resource);
      resource.#scope = undefined;
      native.dispose(resource.#handle);
    };

    moveOut = (resource) => {
      if (resource.#scope === undefined)
        native.keep(resource.#handle); // it is kept already; if it was disposed, this throws
      else resource.#collectGarbage();
      resource.#scope = undefined;
    };
  }
}

export const handleOf = handleIn!;

/** Frees a tensor now. A second call does nothing. */
export const dispose = free!;

/**
 * Takes a tensor out of its scope: it lives until `dispose()`, or until it is garbage-collected. Returns the tensor.
 */
export function keep<T extends Resource>(tensor: T): T {
  moveOut(tensor);
  return tensor;
}

/**
 * Runs `body`, then frees every tensor that was created in it, except those that were kept or are returned. Returned
 * tensors, at any depth of arrays, plain objects, maps and sets, move to the enclosing scope. For an async `body` the
 * tensors are freed when its promise settles.
 *
 * Without a scope, tensors wait for the garbage collector, and Node frees what it has found only when the event loop
 * turns. A synchronous loop without a scope therefore frees nothing before it ends, however much memory it takes. Call
 * `scope` in each of its iterations.
 */
export function scope<T>(body: () => T): T {
  const inner = new Scope(currentScope());
  let result: T;
  try {
    result = owner.run(inner, body);
  } catch (error) {
    close(inner, undefined);
    throw error;
  }
  if (!isPromise(result)) {
    close(inner, resourcesIn(result));
    return result;
  }
  return result.then(
    (value) => {
      close(inner, resourcesIn(value));
      return value;
    },
    (error) => {
      close(inner, undefined);
      throw error;
    },
  ) as T;
}

/** Number of live tensors of this thread, and bytes of their memory. Memory that several views share counts once. */
export const memory = (): { tensors: number; bytes: number } => native.memory();

/**
 * The bytes that tensors made by `work` take on the CPU after each allocation, those of operators and of backward among
 * them: the largest is what `work` needs. It counts the whole process, so nothing else may compute meanwhile; a second
 * one at the same time throws `TensorError`.
 */
export async function memoryDuring(work: () => unknown): Promise<number[]> {
  native.countMemory();
  let counted: number[] = [];
  try {
    await work();
  } finally {
    counted = native.countedMemory();
  }
  return counted;
}

function described(value: unknown): string {
  if (typeof value === "string") return JSON.stringify(value);
  if (Array.isArray(value)) return "an array";
  return typeof value === "object" && value !== null ? "an object" : String(value);
}

function resourcesIn(value: unknown): Set<Resource> | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const found = new Set<Resource>();
  const seen = new Set<object>();
  const left: unknown[] = [value];
  while (left.length > 0) {
    const next = left.pop();
    if (typeof next !== "object" || next === null || seen.has(next) || ArrayBuffer.isView(next)) continue;
    seen.add(next);
    if (next instanceof Resource) found.add(next);
    else for (const element of elementsOf(next)) left.push(element);
  }
  return found;
}

function elementsOf(value: object): Iterable<unknown> {
  if (value instanceof Map) return [...value].flat();
  return Array.isArray(value) || value instanceof Set ? value : Object.values(value);
}
