/** What the keys that a user has overridden say in a picture: the data beside the title, the others below it. */
export function overridesText(overrides: readonly string[]): { readonly on: string; readonly subtitle: string } {
  const path = /^data\.path=(.*)$/;
  const data = overrides.findLast((word) => path.test(word));
  const others = overrides.filter((word) => !path.test(word));
  return {
    on: data === undefined ? "" : ` on ${shortened(path.exec(data)![1]!.replace(/^"(.*)"$/, "$1"), 30)}`,
    subtitle: others.length === 0 ? "" : shortened(`with ${others.join(", ")}`, 120),
  };
}

/** The end of a long text says more: of a path the file. */
const shortened = (text: string, most: number) => (text.length <= most ? text : `…${text.slice(-most + 1)}`);
