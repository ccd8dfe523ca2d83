/** A picture with standing bars in groups, one panel below the other. Bars of one name in a group are stacked. */
import { barY, ruleY } from "@observablehq/plot";
import { chart } from "@terse/pictures/chart";
import { legend, svg, swatch } from "@terse/pictures/svg";

interface Bar {
  readonly group: string;
  readonly name: string;
  /** A class of the picture: own, own-waiting, peer. */
  readonly colour: string;
  readonly value: number;
}

interface Groups {
  readonly title: string;
  readonly legend: readonly (readonly [text: string, colour: string])[];
  readonly panels: readonly { readonly label: string; readonly bars: readonly Bar[] }[];
}

const [width, top, letter] = [860, 60, 6];

export function barGroups({ title, legend: entries, panels }: Groups): string {
  const swatches = entries.map(([text, colour]) => [text, swatch(colour)] as const);
  const names = panels.flatMap(({ bars }) => bars.map(({ name }) => name));
  const longest = Math.max(...names.map((name) => name.length));
  const isCrowded = new Set(names).size > 6; // then the names of bars stand upright
  const below = isCrowded ? 20 + letter * longest : 30;
  const height = 240 + below;
  const parts = panels.map(({ label, bars }, i) => {
    const stacked = bars.map((bar, at) => {
      const under = bars.slice(0, at).filter(({ group, name }) => group === bar.group && name === bar.name);
      const from = under.reduce((sum, { value }) => sum + value, 0);
      return { ...bar, from, to: from + bar.value };
    });
    const marks = [...Map.groupBy(stacked, ({ colour }) => colour)].map(([className, of]) =>
      barY(of, { fx: "group", x: "name", y1: "from", y2: "to", className }),
    );
    return chart(0, top + i * (height + 10), {
      width,
      height,
      marginLeft: 68,
      marginRight: 10,
      marginTop: 26,
      marginBottom: below,
      fx: { label: null, domain: [...new Set(bars.map(({ group }) => group))] },
      x: {
        label: null,
        domain: [...new Set(bars.map(({ name }) => name))],
        tickSize: 0,
        ...(isCrowded && { tickRotate: -90 }),
      },
      y: { label, grid: true, ticks: 5, labelOffset: 60 },
      marks: [...marks, ruleY([0])],
    });
  });
  return svg({ width, height: top + panels.length * (height + 10), title }, [legend(swatches, 16, 46), ...parts]);
}
