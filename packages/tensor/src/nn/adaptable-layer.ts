import type { Tensor } from "../tensor.ts";
import { Module } from "./module.ts";
import type { Parameter } from "./parameter.ts";

/** What an adapter adds to a layer. Its children stand among those of the layer, under their own names. */
export abstract class LayerAdapter extends Module {
  /** The layer's output with what the adapter adds: x is what the layer read, and y what it gave. */
  abstract forward(x: Tensor, y: Tensor): Tensor;
}

/** A layer with one weight, to which an adapter can be added. */
export abstract class AdaptableLayer extends Module {
  abstract readonly weight: Parameter;
  adapter: LayerAdapter | null = null;

  protected adapted(x: Tensor, y: Tensor): Tensor {
    return this.adapter === null ? y : this.adapter.forward(x, y);
  }

  override children(): [name: string, module: Module][] {
    return this.adapter?.children() ?? [];
  }
}
