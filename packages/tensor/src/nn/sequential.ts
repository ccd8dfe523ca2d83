import { scope } from "../lifetime.ts";
import type { Tensor } from "../tensor.ts";
import type { Module } from "./module.ts";
import { ModuleList } from "./module-list.ts";

/** A module that maps one tensor to one tensor. */
export type Layer = Module & { forward(x: Tensor): Tensor };

/** Layers one after the other, named by their index: "0", "1", … */
export class Sequential extends ModuleList<Layer> {
  constructor(...layers: readonly Layer[]) {
    super(layers);
  }

  forward(x: Tensor): Tensor {
    for (const layer of this) x = scope(() => layer.forward(x));
    return x;
  }
}
