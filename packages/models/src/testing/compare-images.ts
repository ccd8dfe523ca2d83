/** Compares a model of images with one in PyTorch, for tests. */
import { manualSeed, noGrad, randint, randn, type Tensor } from "@terse/tensor";
import { expect } from "vitest";
import { relativeError, runPython } from "../../../tensor/src/testing/python.ts";
import type { ImageClassifier } from "../image-classifier.ts";

const tolerance = 1e-5;

/** Changes norms and biases, whose first values, 1 and 0, would hide an error. */
function perturb(model: ImageClassifier): void {
  noGrad(() => {
    for (const p of model.parameters())
      if (p.role === "norm" || p.role === "vector") p.add_(randn(p.shape), { alpha: 0.1 });
  });
}

/**
 * Logits, loss, accuracy, all gradients and the buffers afterwards, in training and then in evaluation, beside the
 * Python model `m` that `pytorch` makes. That model reads our state with strict=True, so names and shapes are the same.
 */
export async function compareImages(
  model: ImageClassifier,
  pytorch: string,
  { rows, size, classes }: { rows: number; size: number; classes: number },
): Promise<void> {
  manualSeed(3);
  perturb(model);
  const images = randn([rows, 3, size, size]);
  const labels = randint(0, classes, [rows]);
  const state = Object.fromEntries(model.stateDict().map(([name, t]) => [`state ${name}`, t.detach().clone()]));
  const got: Record<string, Tensor> = {};
  for (const mode of ["training", "evaluation"]) {
    model.train(mode === "training");
    for (const p of model.parameters()) p.grad = null;
    const logits = model.forward(images);
    const buffers = model.namedBuffers().map(([name, t]) => [name, t.clone()] as const); // after one pass
    const loss = model.loss({ images, labels });
    await loss.backward();
    const results = [
      ["logits", logits],
      ["loss", loss],
      ["accuracy", noGrad(() => model.metrics({ images, labels }).accuracy)],
      ...model.namedParameters().map(([name, p]) => [`gradient of ${name}`, p.grad!] as const),
      ...buffers,
    ] as const;
    for (const [name, t] of results) got[`${mode}: ${name}`] = t.detach().clone();
    const own = new Map(model.namedBuffers());
    noGrad(() => {
      for (const [name, t] of buffers) own.get(name)!.copy_(t);
    });
  }
  const expected = await runPython(
    `
${pytorch}
m.load_state_dict({name[6:]: t for name, t in inputs.items() if name.startswith("state ")}, strict=True)
for mode in ("training", "evaluation"):
    m.train(mode == "training").zero_grad()
    logits = m(inputs["images"])
    loss = F.cross_entropy(logits, inputs["labels"])
    loss.backward()
    mine = dict(logits=logits, loss=loss, accuracy=(logits.argmax(1) == inputs["labels"]).float().mean())
    mine.update({"gradient of " + name: p.grad for name, p in m.named_parameters()}, **dict(m.named_buffers()))
    outputs.update({mode + ": " + name: t.detach().clone() for name, t in mine.items()})
`,
    { images, labels, ...state },
  );
  expect(Object.keys(got).sort()).toEqual(Object.keys(expected).sort());
  const errors = Object.entries(got).map(([name, t]) => [name, relativeError(t, expected[name]!)] as const);
  expect(errors.filter(([, error]) => !(error <= tolerance))).toEqual([]);
}
