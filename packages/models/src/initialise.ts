import { type Module, noGrad } from "@terse/tensor";

/** Weights from N(0, 0.02²), biases 0; norms stay. As in BERT published with its paper, and in transformers' Llama. */
export function initialise(model: Module): void {
  noGrad(() => {
    for (const parameter of model.parameters()) {
      if (parameter.shape.length >= 2) parameter.normal_({ std: 0.02 });
      else if (parameter.role === "vector") parameter.zero_();
    }
  });
}
