import { spawnSync } from "node:child_process";
import { chmodSync, cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { parseAddress } from "../../apps/page/src/address.ts";
import { pins } from "../dependencies/versions.ts";
import { root } from "../toolchain.ts";
import { which } from "../which.ts";

const text = readFileSync(join(root, "Containerfile"), "utf8");
const instructions = text
  .replaceAll(/^#.*\n/gm, "")
  .replaceAll(/\\\n/g, " ")
  .split("\n")
  .filter((line) => line !== "")
  .map((line) => /^([A-Z]+) +(.*)$/.exec(line)!.slice(1) as [string, string]);
const all = (name: string) => instructions.filter(([key]) => key === name).map(([, value]) => value);

it("has instructions that every builder knows, from a base of its own", () => {
  const known = ["FROM", "ARG", "RUN", "USER", "WORKDIR", "ENV", "COPY", "EXPOSE", "ENTRYPOINT", "CMD"];
  expect(instructions.map(([key]) => key).filter((key) => !known.includes(key))).toEqual([]);
  expect(instructions[0]![0]).toBe("FROM");
});

it("installs what CI installs on a fresh machine, with which everything is known to build", () => {
  const workflow = readFileSync(join(root, ".github/workflows/ci.yml"), "utf8");
  const packages = (commands: string) =>
    /apt-get install -y --no-install-recommends ([^&\n]*)/.exec(commands)![1]!.trim().split(/\s+/);
  expect(packages(all("RUN").join("\n"))).toEqual(expect.arrayContaining(packages(workflow)));
  expect(text).toContain(`FROM ${/image: \["(debian:\d+)"/.exec(workflow)![1]}`);
});

it("names its user by the number that it gave, which Kubernetes' runAsNonRoot needs, and a torch that the addons know", () => {
  expect(all("USER")).toEqual([/useradd .*--uid (\d+) /.exec(all("RUN").join("\n"))![1]]);
  for (const each of [text, readFileSync(join(root, "docs/launching.md"), "utf8")])
    expect(each).toContain(`--build-arg TORCH=torch==${pins.torch}`);
});

it("starts the entry script with commands that it has", () => {
  const [entry] = JSON.parse(all("ENTRYPOINT")[0]!) as string[];
  expect(existsSync(join(root, entry!))).toBe(true);
  const help = readFileSync(join(root, "tools/help.txt"), "utf8");
  const started = [
    JSON.parse(all("CMD")[0]!)[0],
    ...all("RUN").flatMap((run) => /\.\/terse (\w+)/.exec(run)?.[1] ?? []),
  ];
  expect(started).toHaveLength(2);
  for (const command of started) expect(help).toContain(`./terse ${command}`);
});

it("leaves out what a machine has built for itself, and opens the ports that are documented", () => {
  const ignored = readFileSync(join(root, ".dockerignore"), "utf8").trim().split("\n");
  expect(ignored).toEqual(expect.arrayContaining(["**/node_modules", "**/build", "**/dist"]));
  expect(all("EXPOSE")[0]!.split(" ")).toContain(String(parseAddress("").port));
});

const debootstrap = which("debootstrap") ?? which("debootstrap", "/usr/sbin");
const obstacle =
  process.env["TERSE_CONTAINER"] !== "1"
    ? "it takes a quarter of an hour, and fetches 1 GB: TERSE_CONTAINER=1 ./terse test containerfile"
    : process.getuid?.() !== 0 || debootstrap === undefined
      ? "it needs root, and debootstrap"
      : undefined;

/** The instructions in a root folder of Debian, as a builder of images runs them. */
describe.skipIf(obstacle)(`the image${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
  const image = obstacle === undefined ? mkdtempSync("/var/tmp/terse-image-") : "";
  afterAll(() => image && rmSync(image, { recursive: true, force: true }));
  const suites: Record<string, string> = { "debian:12-slim": "bookworm" };
  const certificates = "/usr/local/share/ca-certificates"; // of this network, where it has its own
  const env: Record<string, string> = { PATH: "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" };
  for (const [name, value] of Object.entries(process.env))
    if (/(_CERTS?|_CA_BUNDLE|^SSL_CERT_FILE)$/.test(name)) env[name] = value!;
  let [user, folder] = ["0", "/"];

  const run = (program: string, ...args: string[]) => {
    const { status, stdout, stderr } = spawnSync(program, args, { cwd: root, encoding: "utf8", maxBuffer: 1e9 });
    expect(status, `${program} ${args.join(" ")}\n${stdout.slice(-5000)}\n${stderr.slice(-5000)}`).toBe(0);
    return stdout;
  };
  const inImage = (command: string) => {
    const home = /^([^:]*:){5}([^:]*)/.exec(run("chroot", image, "getent", "passwd", user))![2]!;
    const words = Object.entries({ ...env, HOME: home }).map(([name, value]) => `${name}=${value}`);
    const enter = `mount --rbind /dev "$0/dev" && mount -t proc proc "$0/proc" && exec chroot --userspec=${user}:${user} "$0" "$@"`;
    const shell = ["env", "-i", ...words, "sh", "-c", `cd ${folder} && ${command}`];
    return run("unshare", "--mount", "--pid", "--fork", "sh", "-c", enter, image, ...shell);
  };
  const set = (assignment: string) => {
    const [name, value] = assignment.split("=") as [string, string];
    env[name] = value;
  };
  const ways: Record<string, (value: string) => void> = {
    FROM: (value) => {
      chmodSync(image, 0o755); // for its user
      run(debootstrap!, "--variant=minbase", suites[value]!, image);
      for (const file of ["etc/resolv.conf", "etc/hosts"])
        cpSync(join("/", file), join(image, file), { dereference: true });
      if (existsSync(certificates)) cpSync(certificates, join(image, certificates), { recursive: true });
    },
    ARG: set,
    ENV: set,
    USER: (value) => {
      user = value;
    },
    WORKDIR: (value) => {
      folder = value;
    },
    COPY: () => {
      const sources = "git ls-files -z --cached --others --exclude-standard | tar -c --null --files-from=-";
      run(
        "sh",
        "-c",
        `${sources} | tar -x --no-same-owner -C "$0" && chown -R ${user}:${user} "$0"`,
        join(image, folder),
      );
    },
    RUN: inImage,
  };

  const built = instructions.filter(([name]) => name in ways);
  it.each(built)("is built by %s %s", (name, value) => ways[name]!(value), 1_800_000);

  it("trains as its user", () => {
    expect(inImage("./terse train --steps=2")).toMatch(/^step: 2 {2}validation_loss/m);
  });
});
