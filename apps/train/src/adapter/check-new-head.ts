import { loraOf, type Model } from "@terse/models";
import { OptionsError } from "@terse/options";

/** Throws `OptionsError` where a new head, which has random values, would stay as it is because of an adapter. */
export function checkNewHead(model: Model): void {
  if (!loraOf(model)) return;
  const frozen = model.namedParameters().filter(([name, p]) => model.headNames?.test(name) && !p.requiresGrad);
  if (frozen.length === 0) return;
  const modules = [...new Set(frozen.map(([name]) => name.split(".").slice(0, -1).join(".")))];
  throw new OptionsError([
    `--new-head: the head begins with random values, and with adapter it would keep them; train it: --adapter.modulesToSave='[${modules.join(", ")}]'`,
  ]);
}
