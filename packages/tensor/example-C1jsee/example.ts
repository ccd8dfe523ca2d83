import { Arena, crossEntropy, Linear, manualSeed, memory, Module, noGrad, scope, type Tensor, tensor } from "@terse/tensor";

class Classifier extends Module {
  readonly hidden = new Linear(2, 16);
  readonly out = new Linear(16, 2);

  forward(x: Tensor): Tensor {
    return this.out.forward(this.hidden.forward(x).tanh());
  }
}

manualSeed(1);
const model = new Classifier();
const arena = new Arena(model); // all parameters are views of one flat buffer, all gradients of another
console.log(arena.segments.map(({ name, shape, role }) => `${name} ${shape.join("×")} ${role}`));

const x = tensor([[0, 0], [0, 1], [1, 0], [1, 1]]);
const exclusiveOr = tensor([0, 1, 1, 0], { dtype: "i64" });
const before = memory().tensors;

for (let step = 0; step < 300; step++) {
  await scope(async () => {
    arena.zeroGradients();
    const loss = crossEntropy(model.forward(x), exclusiveOr);
    await loss.backward(); // on a thread of its own; JavaScript is free meanwhile
    noGrad(() => arena.parameters.add_(arena.gradients, { alpha: -0.5 }));
  }); // every tensor born here is gone
}

console.log("learned:", await scope(() => model.forward(x).argmax(1).toTypedArray()));
console.log("left behind:", memory().tensors - before);
