/** The text that the model of the run whose details are shown has written, and what was said of its exchange. */
import { element } from "../element.ts";
import type { Panel, View } from "./panel.ts";

export class Sample implements Panel {
  readonly card = element("section", { class: "card", "aria-label": "Sample of text" });

  show({ runs, chosen }: View): void {
    const { last } = runs[chosen]!;
    const [prompt, text] = [last.get("sample/prompt"), last.get("sample/text")];
    this.card.hidden = typeof text !== "string";
    if (this.card.hidden) return;
    this.card.replaceChildren(
      element("h2", {}, "Sample of text"),
      element("p", { class: "about" }, `After ${JSON.stringify(prompt ?? "")}:`),
      element("pre", { tabindex: "0" }, text as string),
    );
  }
}
