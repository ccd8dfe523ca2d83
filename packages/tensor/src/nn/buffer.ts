import { keep } from "../lifetime.ts";
import { detached, Tensor } from "../tensor.ts";

/**
 * A tensor of a module that is not trained, such as a running mean. It is moved, saved and restored with the module, as
 * torch.nn.Buffer. No optimizer sees it, and no scope frees it. It shares the memory of `data`.
 */
export class Buffer extends Tensor {
  constructor(data: Tensor) {
    super(detached(data));
    keep(this);
  }
}
