import { cpSync, existsSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { type ArmCpp, armIsHere, findArmCpp, installArmCpp } from "../dependencies/arm.ts";
import { installNode, nodes } from "../dependencies/node.ts";
import { onEnd } from "../on-end.ts";
import { StepFailed } from "../remedy.ts";
import { run } from "../run.ts";
import type { Progress, Steps } from "../steps.ts";
import { root } from "../toolchain.ts";
import { type Example, examples } from "./examples.ts";
import { portable, prebuild, targets } from "./prebuild.ts";

/**
 * Makes what would be published of the last commit, and installs and runs it as a user does. Publishes nothing, and
 * changes nothing in the checkout: it sets versions and builds everything in a copy. The tarballs are left in `out`.
 */
export async function release(steps: Steps, env: Record<string, string>, out: string): Promise<void> {
  const scratch = mkdtempSync(join(tmpdir(), "terse-release-"));
  const discard = () => rmSync(scratch, { recursive: true, force: true });
  const cancel = onEnd(discard);
  try {
    const copy = join(scratch, "terse");
    const user = join(scratch, "user");
    await steps.run("a copy of the last commit", "", (progress) => copyCheckout(progress, copy));
    await steps.run("versions", "from the changesets", async (progress) => {
      const changesets = globSync(".changeset/*.md", { cwd: copy });
      if (changesets.length > 0)
        await progress.run(join(copy, "node_modules/.bin/changeset"), ["version"], { cwd: copy, env });
    });
    const packages = published(copy);
    await steps.run("dist", "of every package", async (progress) => {
      const turbo = ["run", "build", "--filter=./packages/*", "--filter=./native/*", "--ui=stream"];
      await progress.run(join(copy, "node_modules/.bin/turbo"), turbo, { cwd: copy, env });
    });
    const arm = armIsHere
      ? undefined
      : (findArmCpp() ?? (await steps.run("ARM compiler", "about 70 MB to fetch", installArmCpp)));
    for (const target of targets) {
      await steps.run(`addons for ${target}`, "compiling", async (progress) => {
        for (const name of portable) await prebuild(progress, copy, name, target, arm);
      });
    }
    mkdirSync(out, { recursive: true });
    for (const old of globSync("*.tgz", { cwd: out })) rmSync(join(out, old));
    await steps.run("tarballs", "", async (progress) => {
      for (const { folder } of packages)
        await progress.run("pnpm", ["pack", "--pack-destination", out], { cwd: join(copy, folder), env });
    });
    const tarballs = globSync("*.tgz", { cwd: out }).map((file) => join(out, file));
    await steps.run("a dry publish", "", async (progress) => {
      for (const tarball of tarballs) await progress.run("npm", ["publish", "--dry-run", "--access=public", tarball]);
    });

    await steps.run("installation without a compiler", "npm install", (progress) => install(progress, user, tarballs));
    const all = examples(copy);
    const nativeFree = all.filter((example) => !needsTensor(copy, example.folder));
    const runners = await Promise.all(
      nodes.map(async (version) => ({ version, node: await nodeFor(steps, version, process.arch) })),
    );
    for (const { version, node } of runners)
      await steps.run(`${nativeFree.length} examples`, `in Node ${version}`, () =>
        runExamples(user, [node], version, nativeFree),
      );
    for (const version of arm ? nodes : []) {
      const node = await nodeFor(steps, version, "arm64");
      await steps.run(`${nativeFree.length} examples on ARM`, `in Node ${version}, emulated`, () =>
        runExamples(user, emulated(arm!, node), version, nativeFree),
      );
    }
    await steps.run("the addon that needs libtorch", "npx cmake-js build", async (progress) => {
      const cmakeJs = join(root, "node_modules/cmake-js/bin/cmake-js");
      await progress.run(process.execPath, [cmakeJs, "build"], { cwd: installed(user, "native-tensor"), env });
    });
    const rest = all.filter((example) => !nativeFree.includes(example));
    for (const { version, node } of runners)
      await steps.run(`${rest.length} examples with tensors`, `in Node ${version}`, () =>
        runExamples(user, [node], version, rest),
      );
    for (const { name, version } of packages) process.stdout.write(`${name} ${version}\n`);
    process.stdout.write(`${tarballs.length} tarballs: ${out}\n`);
  } finally {
    discard();
    cancel();
  }
}

/** The files of the last commit, with this checkout's installed packages, which are linked and not copied. */
async function copyCheckout(progress: Progress, copy: string): Promise<void> {
  await progress.run("git", ["clone", "--quiet", "--no-hardlinks", root, copy]);
  for (const folder of globSync(["node_modules", "{packages,native,apps}/*/node_modules", "test-e2e/node_modules"], {
    cwd: root,
  }))
    if (existsSync(join(copy, dirname(folder))))
      await progress.run("cp", ["-a", "--reflink=auto", join(root, folder), join(copy, folder)]);
}

/** The packages that are published, with their versions. Every one must have a version of its own by now. */
export function published(copy: string): { name: string; version: string; folder: string }[] {
  const found = globSync("{packages,native}/*/package.json", { cwd: copy }).map((file) => ({
    ...(JSON.parse(readFileSync(join(copy, file), "utf8")) as { name: string; version: string; private?: boolean }),
    folder: dirname(file),
  }));
  const packages = found.filter((description) => description.private !== true);
  const without = packages.filter(({ version }) => version === "0.0.0").map(({ name }) => name);
  if (without.length > 0)
    throw new StepFailed(`${without.join(", ")}: no changeset gives a version. Add one with \`pnpm changeset\`.`);
  return packages;
}

async function install(progress: Progress, user: string, tarballs: readonly string[]): Promise<void> {
  mkdirSync(user);
  writeFileSync(join(user, "package.json"), `{ "name": "user", "private": true, "type": "module" }`);
  // No package has an install script, and none is run: what is installed is what was packed.
  const quiet = ["--no-audit", "--no-fund", "--ignore-scripts"];
  await progress.run("npm", ["install", ...quiet, ...tarballs], { cwd: user });
  for (const name of portable)
    for (const target of targets)
      if (!existsSync(join(installed(user, `native-${name}`), "dist/prebuilt", target, `${name}.node`)))
        throw new StepFailed(`@terse/native-${name} has no addon for ${target} in its tarball.`);
}

const installed = (user: string, name: string): string => join(user, "node_modules/@terse", name);

/** Whether a package depends on the addon that needs libtorch. */
export function needsTensor(copy: string, folder: string): boolean {
  const { dependencies = {} } = JSON.parse(readFileSync(join(copy, folder, "package.json"), "utf8")) as {
    dependencies?: Record<string, string>;
  };
  return Object.keys(dependencies).some(
    (name) =>
      name === "@terse/native-tensor" ||
      (name.startsWith("@terse/") &&
        needsTensor(
          copy,
          name.replace(/^@terse\/(native-)?/, (_, native) => (native ? "native/" : "packages/")),
        )),
  );
}

async function nodeFor(steps: Steps, version: string, architecture: string): Promise<string> {
  return steps.run(`Node ${version}, ${architecture}`, "about 60 MB to fetch", (progress) =>
    installNode(progress, version, architecture),
  );
}

const emulated = ({ emulator, libraries }: ArmCpp, node: string): string[] => [emulator, "-L", libraries, node];

/** Runs the examples as they are, in a folder with nothing but the tarballs. They must print what the READMEs say. */
async function runExamples(
  user: string,
  [command, ...words]: readonly string[],
  version: string,
  list: readonly Example[],
): Promise<void> {
  for (const { package: name, code, printed } of list) {
    const file = join(user, `example-${basename(name)}.ts`);
    writeFileSync(file, code);
    if (name === "@terse/data") cpSync(join(root, "packages/data/README.md"), join(user, "README.md"));
    let all = "";
    const output = await run(command!, [...words, "--disable-warning=ExperimentalWarning", file], {
      cwd: user,
      env: { NODE_OPTIONS: undefined, NODE_COMPILE_CACHE: undefined },
      onOutput: (text) => {
        all += text;
      },
    });
    if (all.includes("TerseWarning")) throw new StepFailed(`The example of ${name} in Node ${version}: ${all}`);
    if (output !== printed)
      throw new StepFailed(`The example of ${name} in Node ${version} printed ${output} instead of ${printed}`);
  }
}

/** The folder of the tarballs, from the arguments of `./terse release`. */
export function releaseFolder(args: readonly string[]): string {
  const folders = args.filter((word) => word !== "--dry-run");
  if (folders.length > 1 || folders.some((word) => word.startsWith("-")))
    throw new StepFailed(`./terse release takes one folder for the tarballs, and not ${folders.join(" ")}.`);
  return resolve(folders[0] ?? join(root, "build", "release"));
}
