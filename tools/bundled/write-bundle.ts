/** Writes the bundle of a program: `node write-bundle.ts PROGRAM.ts BUNDLE.mjs`. */
import { globSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, relative } from "node:path";
import { pathToFileURL } from "node:url";
import { build, type Plugin } from "esbuild";
import { type Header, root, stampOf } from "./bundle-of.ts";

const [program, bundle] = process.argv.slice(2) as [string, string];

/** The state of each file before it was read: one that changes afterwards is noticed at the next start. */
const stamps = new Map<string, string>();

/** A source finds its addon, its threads and the files beside it where it is. */
const ownPlace: Plugin = {
  name: "own place",
  setup({ onLoad }) {
    onLoad({ filter: /./ }, ({ path }) => {
      stamps.set(relative(root, path), stampOf(path));
      if (!path.endsWith(".ts")) return undefined;
      const contents = readFileSync(path, "utf8")
        .replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href))
        .replaceAll("import.meta.dirname", JSON.stringify(dirname(path)));
      return { contents, loader: "ts" };
    });
  },
};

/** Packages that find their binaries by the place of their own files. */
const withBinaries = new Set(["esbuild", "sharp"]);

/** Packages that a source imports only when it needs them, and those with binaries, stay outside. */
const outside: Plugin = {
  name: "outside",
  setup({ onResolve, resolve }) {
    onResolve({ filter: /^[^./@]/ }, async ({ path, importer, kind, resolveDir, pluginData }) => {
      const isLazy = kind === "dynamic-import" && importer.endsWith(".ts");
      if (pluginData === outside || !(isLazy || withBinaries.has(path))) return undefined;
      const found = await resolve(path, { importer, kind, resolveDir, pluginData: outside });
      return found.external ? undefined : { path: pathToFileURL(found.path).href, external: true };
    });
  },
};

// The manifests say which version of a package is installed, and which of its files is imported.
for (const file of globSync(["pnpm-lock.yaml", "{apps,native,packages,test-e2e}/{,*/}package.json"], { cwd: root }))
  stamps.set(file, stampOf(join(root, file)));

const { outputFiles } = await build({
  absWorkingDir: root,
  entryPoints: [program],
  outfile: bundle,
  bundle: true,
  platform: "node",
  format: "esm",
  target: `node${process.versions.node}`,
  conditions: ["@terse/source", "node", "import", "module"],
  keepNames: true, // messages name classes
  sourcemap: "linked",
  sourcesContent: false,
  plugins: [ownPlace, outside],
  banner: {
    js: '//\nimport { createRequire as requireFrom } from "node:module"; const require = requireFrom(import.meta.url);',
  },
  write: false,
  logLevel: "silent",
});

const header: Header = { root, node: process.version, inputs: [...stamps] };

mkdirSync(dirname(bundle), { recursive: true });
for (const { path, text } of outputFiles) {
  const partial = `${path}.${process.pid}`;
  writeFileSync(
    partial,
    text.replace(/^\/\/\n/, () => `//${JSON.stringify(header)}\n`),
  );
  renameSync(partial, path);
}
