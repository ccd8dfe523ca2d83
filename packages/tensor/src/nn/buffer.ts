import { type Handle, native } from "@terse/native-tensor";
import { handleOf, keep } from "../lifetime.ts";
import { Tensor } from "../tensor.ts";

const detach = native.find("aten::detach");

/**
 * A tensor of a module that is not trained, such as a running mean. It is moved, saved and restored with the module, as
 * torch.nn.Buffer. No optimizer sees it, and no scope frees it. It shares the memory of `data`.
 */
export class Buffer extends Tensor {
  constructor(data: Tensor) {
    super(native.call(detach, handleOf(data)) as Handle);
    keep(this);
  }
}
