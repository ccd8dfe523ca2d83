import {
  chmodSync,
  createReadStream,
  createWriteStream,
  existsSync,
  globSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createBrotliDecompress } from "node:zlib";
import { homeFolder } from "../home-folder.ts";
import { StepFailed } from "../remedy.ts";
import type { Progress } from "../steps.ts";
import { installFolder, requireComplete, toolchain } from "../toolchain.ts";
import { which } from "../which.ts";
import { pins } from "./versions.ts";

const folder = join(toolchain, `chromium-${pins.chromium}-with-font`);
const names = ["chromium", "chromium-browser", "chromium-headless-shell", "google-chrome", "google-chrome-stable"];
export const browserRemedy = "install one (`sudo apt-get install chromium`), or name it in TERSE_BROWSER";

/** Whether one can be installed here. */
export const canInstallBrowser = process.platform === "linux" && process.arch === "x64";

/** A Chromium from TERSE_BROWSER, else the PATH, else the toolchain folder; undefined when there is none. */
export function findBrowser(): string | undefined {
  const named = process.env["TERSE_BROWSER"];
  if (named) {
    if (!existsSync(named))
      throw new StepFailed(`TERSE_BROWSER=${named} does not exist: unset it, or name a Chromium.`);
    return named;
  }
  const own = join(folder, "chromium");
  const onPath = fontsAreHere() ? names.map((name) => which(name)).find((path) => path !== undefined) : undefined;
  return onPath ?? (existsSync(own) ? own : undefined);
}

/** Without any font a Chromium ends as soon as a page draws text; the one in the toolchain folder brings its own. */
function fontsAreHere(): boolean {
  const home = homeFolder();
  const own = home === undefined ? [] : [join(home, ".fonts"), join(home, ".local/share/fonts")];
  const folders = ["/usr/share/fonts", "/usr/local/share/fonts", ...own];
  return folders.some((path) => globSync("**/*.{ttf,otf,ttc,pfb}", { cwd: path }).length > 0);
}

/**
 * Installs the headless Chromium of @sparticuz/chromium, with the libraries and the font that a minimal system lacks.
 */
export async function installBrowser(progress: Progress): Promise<string> {
  if (!canInstallBrowser)
    throw new StepFailed(`Chromium cannot be installed for ${process.platform} on ${process.arch}: ${browserRemedy}.`);
  const npm = which("npm");
  if (npm === undefined) throw new StepFailed(`npm, which fetches Chromium, is not on the PATH: ${browserRemedy}.`);
  const fill = async (partial: string) => {
    const retries = ["--prefer-offline", "--fetch-retry-mintimeout=1000", "--fetch-retry-maxtimeout=5000"];
    await progress.run(npm, ["pack", `@sparticuz/chromium@${pins.chromium}`, "--loglevel=error", ...retries], {
      cwd: partial,
    });
    const [archive] = readdirSync(partial).filter((file) => file.endsWith(".tgz"));
    await progress.run("tar", ["-xzf", archive!], { cwd: partial });
    progress.say("unpacking");
    const packed = join(partial, "package", "bin");
    await decompress(join(packed, "chromium.br"), join(partial, "chromium.bin"));
    // Into lib/ and fonts/.
    for (const name of ["al2023.tar", "fonts.tar"]) {
      await decompress(join(packed, `${name}.br`), join(partial, name));
      await progress.run("tar", ["-xf", name], { cwd: partial });
      rmSync(join(partial, name));
    }
    for (const done of [archive!, "package"]) rmSync(join(partial, done), { recursive: true });
    writeFileSync(join(partial, "fonts.conf"), fontConfiguration);
    writeFileSync(join(partial, "chromium"), start);
    for (const file of ["chromium", "chromium.bin"]) chmodSync(join(partial, file), 0o755);
    await progress.run(join(partial, "chromium"), ["--version"]);
  };
  await installFolder(progress, folder, fill, {
    bytes: 5e8,
    hint: `Without Chromium its tests are skipped: ${browserRemedy}.`,
  });
  return requireComplete(findBrowser(), folder);
}

const start = `#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
export LD_LIBRARY_PATH="$here/lib" FONTCONFIG_FILE="\${FONTCONFIG_FILE:-$here/fonts.conf}"
exec "$here/chromium.bin" "$@"
`;

/** This machine's fonts where it has some, and the one that Chromium brings. */
const fontConfiguration = `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <include ignore_missing="yes">/etc/fonts/fonts.conf</include>
  <dir prefix="relative">fonts</dir>
  <cachedir prefix="xdg">fontconfig</cachedir>
</fontconfig>
`;

const decompress = (from: string, to: string): Promise<void> =>
  pipeline(createReadStream(from), createBrotliDecompress(), createWriteStream(to));
