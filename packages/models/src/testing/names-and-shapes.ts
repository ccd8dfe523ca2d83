/** Names and shapes of whole models, without their memory, for tests. */
import { type Module, withDevice } from "@terse/tensor";
import { runPython } from "../../../tensor/src/testing/python.ts";

/** "name (shape)" of each tensor of a model, in the order of names. */
export function namesAndShapes(create: () => Module): string[] {
  const model = withDevice("meta", create);
  const found = model.stateDict().map(([name, { shape }]) => `${name} (${shape.join(", ")})`);
  model.dispose();
  return found.sort();
}

/**
 * Names and shapes of the Python model `m` that `pytorch` makes. A tied tensor is listed once, under its first name.
 */
export async function namesAndShapesThere(pytorch: string): Promise<string[]> {
  const { text } = await runPython(`
with torch.device("meta"):
    ${pytorch}
named = [*m.named_parameters(), *((n, b) for n, b in m.named_buffers() if n in m.state_dict())]
lines = [f"{n} ({', '.join(map(str, t.shape))})" for n, t in named]
outputs["text"] = torch.tensor(list("\\n".join(lines).encode()), dtype=torch.uint8)`);
  return Buffer.from((await text!.toTypedArray()) as Uint8Array)
    .toString()
    .split("\n")
    .sort();
}
