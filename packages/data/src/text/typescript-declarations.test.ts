import { cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { installationRoot, typescriptDeclarations } from "./typescript-declarations.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "terse-installed-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

function put(path: string, content: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), content);
}
function link(path: string, to: string): void {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  symlinkSync(to, join(root, path));
}
const text = async (options = {}) => Buffer.from(await typescriptDeclarations(root, options)).toString();

/** Packages in pnpm's layout: a depends on b, and b on a scoped package that depends on a. */
function pnpmLayout(platform = `${process.platform}-${process.arch}`): void {
  const store = "node_modules/.pnpm";
  put(`${store}/a@1.0.0/node_modules/a/package.json`, '{ "name": "a" }');
  put(`${store}/a@1.0.0/node_modules/a/index.d.ts`, "declare a;\n");
  put(`${store}/a@1.0.0/node_modules/a/index.js`, "code");
  put(`${store}/b@2.0.0/node_modules/b/lib/b.d.mts`, "declare b;");
  put(`${store}/b@2.0.0/node_modules/b/lib/b.d.cts`, "declare b, again;");
  put(`${store}/b@2.0.0/node_modules/b/lib/copy-of-a.d.ts`, "declare a;\n");
  put(
    `${store}/@s+c-${platform}@3.0.0/node_modules/@s/c-${platform}/package.json`,
    JSON.stringify({ name: `@s/c-${platform}`, os: [platform.split("-")[0]], cpu: [platform.split("-")[1]] }),
  );
  put(`${store}/@s+c-${platform}@3.0.0/node_modules/@s/c-${platform}/c.d.ts`, "declare c;\n");
  put(`${store}/only@1.0.0/node_modules/only/package.json`, '{ "name": "only", "os": ["darwin"] }');
  put(`${store}/only@1.0.0/node_modules/only/only.d.ts`, "declare only;\n");
  put(`${store}/left-behind@1.0.0/node_modules/left-behind/index.d.ts`, "declare old;\n");
  link("node_modules/a", ".pnpm/a@1.0.0/node_modules/a");
  link(`${store}/a@1.0.0/node_modules/b`, "../../b@2.0.0/node_modules/b");
  link(
    `${store}/b@2.0.0/node_modules/@s/c-${platform}`,
    `../../../@s+c-${platform}@3.0.0/node_modules/@s/c-${platform}`,
  );
  link(`${store}/@s+c-${platform}@3.0.0/node_modules/a`, "../../a@1.0.0/node_modules/a"); // a cycle
  link(`${store}/b@2.0.0/node_modules/only`, "../../only@1.0.0/node_modules/only");
  put("packages/mine/dist/index.d.ts", "declare mine;\n");
  link("node_modules/mine", "../packages/mine");
}

describe("typescriptDeclarations", () => {
  it("joins the declarations of linked packages, without duplicates, old packages and packages of the workspace", async () => {
    pnpmLayout();
    expect(await text()).toBe("declare c;\ndeclare a;\ndeclare b;\n"); // c.d.ts, index.d.ts, lib/b.d.mts
  });

  it("gives the same bytes from the layout of npm", async () => {
    put("node_modules/a/index.d.ts", "declare a;\n");
    put("node_modules/a/node_modules/b/lib/b.d.mts", "declare b;");
    put("node_modules/@s/c-any/c.d.ts", "declare c;\n");
    expect(await text()).toBe("declare c;\ndeclare a;\ndeclare b;\n");
  });

  it("skips files that would exceed the limit", async () => {
    pnpmLayout();
    expect(await text({ limitBytes: 22 })).toBe("declare c;\ndeclare a;\n");
  });

  it("reports that no package is installed, and what to do", async () => {
    await expect(typescriptDeclarations(root)).rejects.toThrow(
      /^There are no TypeScript declarations under .*; install the packages, or name a file or folder of text\.$/,
    );
  });

  it("gives several megabytes from this checkout, and the same bytes from a copy in another folder", async () => {
    const here = await typescriptDeclarations();
    expect(here.length).toBeGreaterThan(4 << 20);
    expect(here.length).toBeLessThanOrEqual(8 << 20);
    expect(here.includes(0)).toBe(false);
    const installed = join(installationRoot(), "node_modules");
    cpSync(installed, join(root, "node_modules"), {
      recursive: true,
      verbatimSymlinks: true,
      filter: (path) => !/\.(js|node|map|so)$|\/bin\//.test(path),
    });
    expect(Buffer.from(await typescriptDeclarations(root)).equals(here)).toBe(true);
  });
});
