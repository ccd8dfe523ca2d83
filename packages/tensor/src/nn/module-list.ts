import { Module } from "./module.ts";

/** A list of modules, named by their index: "blocks.0", "blocks.1", … */
export class ModuleList<M extends Module> extends Module implements Iterable<M> {
  readonly modules: readonly M[];

  constructor(modules: Iterable<M>) {
    super();
    this.modules = [...modules];
    const wrong = this.modules.findIndex((module) => !(module instanceof Module));
    if (wrong >= 0)
      throw new TypeError(
        `${this.constructor.name}: element ${wrong} is ${Array.isArray(this.modules[wrong]) ? "an array" : `no Module`}; give modules, as in new Sequential(a, b) and new ModuleList([a, b])`,
      );
  }

  get length(): number {
    return this.modules.length;
  }

  at(index: number): M | undefined {
    return this.modules.at(index);
  }

  [Symbol.iterator](): Iterator<M> {
    return this.modules[Symbol.iterator]();
  }

  override children(): [name: string, module: Module][] {
    return this.modules.map((module, i) => [String(i), module]);
  }
}
