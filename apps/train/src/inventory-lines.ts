import type { FileGroup, Inventory } from "@terse/data";
import { printableLine } from "@terse/options";
import { amountText, bytesText } from "./format.ts";

/**
 * What is read of the data, what is held out, and what is left out and why: one line, or none for data without files.
 * `evaluates`: nothing is trained on, and of files of which none is held out "all" is read, or a "share" of them.
 */
export function inventoryLines(inventory: Inventory | undefined, evaluates?: "all" | "share"): string[] {
  if (inventory === undefined) return [];
  const { training, heldOut, leftOut, passedOver = [] } = inventory;
  const left = leftOut.map((group) => `${filesText(group)} (${group.why})`);
  const whole = `${filesText(training)}, ${bytesText(training.bytes)}`;
  const held = heldOut === undefined ? [] : [`held out as the ${heldOut.split} split: ${filesText(heldOut)}`];
  const read = evaluates === "share" ? `what is held out of ${whole}` : whole;
  const parts = [
    ...(evaluates === undefined ? [`trains on ${whole}`, ...held] : heldOut ? held : [`evaluates on ${read}`]),
    ...(left.length === 0 ? [] : [`left out: ${left.join(", ")}`]),
    ...(passedOver.length === 0 ? [] : [`passed over: ${passedOver.join(", ")}`]),
  ];
  return [printableLine(`data: ${parts.join("; ")}`)];
}

/** The names of few files, and the number and first name of many. */
function filesText({ count, names, endings }: FileGroup): string {
  if (count <= 2) return names.join(", ");
  const ending = endings.length === 1 ? ` (${endings[0]})` : "";
  return `${amountText(count, "file")}${ending}, ${names[0]} …`;
}
