/** The frame of a picture: a page that follows the reader's light or dark mode, and a title. */
export interface Frame {
  readonly width: number;
  readonly height: number;
  readonly title: string;
  readonly subtitle?: string;
}

/** In dark mode, colours with a meaning keep their hue, and greys are lighter. */
const style = `svg{color:#1f2328}.axis{fill:#57606a}.page{fill:#fff}.title{font-weight:600;font-size:13px}
.own{fill:#0969da}.own-waiting{fill:#a5d6ff}.peer{fill:#6e7781}.peer-waiting{fill:#d0d7de}
@media (prefers-color-scheme: dark){svg{color:#e6edf3}.axis{fill:#9198a1}.page{fill:#0d1117}
.own{fill:#388bfd}.own-waiting{fill:#1f4a80}.peer{fill:#8b949e}.peer-waiting{fill:#3d444d}
[stroke="#57606a"]{stroke:#c9d1d9}[fill="#57606a"]{fill:#c9d1d9}[stroke="#8c959f"]{stroke:#6e7681}}`;

export function svg({ width, height, title, subtitle }: Frame, parts: readonly string[]): string {
  const below = subtitle ? `<text class="axis" x="16" y="41">${escaped(subtitle)}</text>` : "";
  const font = 'font-family="system-ui, sans-serif" font-size="12"';
  return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" ${font} fill="currentColor">
<style>${style}</style>
<rect class="page" width="${width}" height="${height}"/>
<text class="title" x="16" y="24">${escaped(title)}</text>${below}
${parts.join("\n")}
</svg>
`;
}

/** What users have named, such as a file, may contain anything. */
export const escaped = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;");

/** Swatches with text side by side; a letter takes about 6.4 units. */
export function legend(entries: readonly (readonly [text: string, swatch: string])[], x: number, y: number): string {
  return entries
    .map(([text, swatch]) => {
      const entry = `<g transform="translate(${x.toFixed(0)} ${y})">${swatch}<text x="22">${text}</text></g>`;
      x += 22 + 6.4 * text.length + 18;
      return entry;
    })
    .join("\n");
}

export const swatch = (name: string) => `<rect class="${name}" y="-9" width="16" height="10"/>`;
