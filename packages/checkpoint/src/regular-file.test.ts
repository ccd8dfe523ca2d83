import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { checkFile } from "./check-file.ts";
import { configFile, loadConfig } from "./config-file.ts";
import { manifestFile, readManifestText } from "./manifest.ts";
import { openRegular, readRegularText } from "./regular-file.ts";
import { indexFile, openWeights, weightsFile } from "./weights.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "terse-regular-"));
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

const pipe = (name: string) => {
  execFileSync("mkfifo", [join(folder, name)]);
  return join(folder, name);
};
const link = (target: string, name: string) => {
  symlinkSync(target, join(folder, name));
  return join(folder, name);
};

describe("what is no regular file", () => {
  it("is refused at once, also behind a link", async () => {
    const all = [
      [pipe("pipe"), "it is a pipe, not a file; name a regular file"],
      [link("pipe", "link"), "it is a pipe, not a file; name a regular file"],
      [link("/dev/zero", "zero"), "it is a device, not a file; name a regular file"],
    ] as const;
    for (const [path, message] of all) {
      await expect(openRegular(path)).rejects.toThrow(message);
      expect(() => readRegularText(path, 10)).toThrow(message);
    }
    mkdirSync(join(folder, "inner"));
    await expect(openRegular(join(folder, "inner"))).rejects.toMatchObject({ code: "EISDIR" });
    await expect(openRegular(join(folder, "absent"))).rejects.toMatchObject({ code: "ENOENT" });
    await expect(openRegular(link("itself", "itself"))).rejects.toMatchObject({ code: "ELOOP" });
  });

  it("is refused where it is a socket", async () => {
    const server = createServer();
    const path = join(folder, "socket");
    await new Promise<void>((done) => server.listen(path, done));
    await expect(openRegular(path)).rejects.toThrow("it is a socket, not a file");
    await new Promise((done) => server.close(done));
  });

  it.each([weightsFile, indexFile, configFile, manifestFile])("is refused as %s of a folder", async (name) => {
    for (const make of [() => pipe(name), () => link("/dev/zero", name)]) {
      const path = make();
      const read = {
        [weightsFile]: () => openWeights(folder),
        [indexFile]: () => openWeights(folder),
        [configFile]: () => loadConfig(folder),
        [manifestFile]: async () => readManifestText(folder),
      }[name]!;
      await expect(read()).rejects.toThrow(
        /^Cannot read .*: it is a (pipe|device), not a file; name a regular file\.$/,
      );
      await expect(checkFile(folder, { name, bytes: 1, crc32: "0" })).rejects.toThrow(/^Cannot read .* not a file/);
      rmSync(path);
    }
  });
});

it("a small file is read whole, also by a link, and a larger one than it may be is refused", () => {
  const path = join(folder, "text");
  writeFileSync(path, "größer");
  expect(readRegularText(link("text", "link"), 8)).toBe("größer");
  expect(() => readRegularText(path, 7)).toThrow("it has more than 7 bytes, and no such file needs them");
});

it("a sparse config.json of a gigabyte is refused without reading it", async () => {
  execFileSync("truncate", ["-s", "1G", join(folder, configFile)]);
  await expect(loadConfig(folder)).rejects.toThrow(/config\.json: it has more than 16777216 bytes/);
});
