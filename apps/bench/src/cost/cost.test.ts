import { spawnSync } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { type Arguments, readArguments, usage } from "./arguments.ts";
import { picture } from "./picture.ts";
import { project } from "./projection.ts";
import { countText, secondsText, tableText } from "./text.ts";

const read = (argv: readonly string[]) => readArguments(argv) as Arguments;

it("takes the paper's setting by default", () => {
  const { networks, parameters, ranks } = read([]);
  expect(networks).toEqual([
    { name: "200 Gbit/s, 2 µs", alpha: 2e-6, beta: 4e-11 },
    { name: "49 Gbit/s, 50 µs", alpha: expect.closeTo(50e-6, 12), beta: 8 / 49e9 },
  ]);
  expect({ parameters, ranks }).toEqual({ parameters: [1e6, 774e6], ranks: 4096 });
  // Its "Ethernet" is what Table A.1 measured: 756.3 ms for 774 M words of 32 bits on 4 GPUs.
  const measured = project(read([])).at(-1)!;
  expect(measured.seconds["ring"]![1]).toBeCloseTo(0.7563, 2);
});

it("takes a network as a link or as α and β, and several of each", () => {
  const args = read(
    "--link 100mbit,1ms --link=1gbit --alpha 1e-3 --beta 8e-8 --parameters 350k --parameters 7G --ranks 12".split(" "),
  );
  expect(args.networks.map(({ alpha, beta }) => [alpha, beta])).toEqual([
    [1e-3, 8e-8],
    [0, 8e-9],
    [1e-3, 8e-8],
  ]);
  expect(args.parameters).toEqual([350e3, 7e9]);
  expect(project(args).map(({ ranks }) => ranks)).toEqual(Array.from({ length: 6 }, () => [2, 4, 8, 12]));
});

it.each([
  ["--lnk 1gbit", "--lnk: unknown flag; did you mean --link?"],
  ["--link fast", "--link: a link is written like 100mbit or 100mbit,1ms"],
  ["--link", "--link needs a value"],
  ["--alpha 1e-6", "--alpha and --beta describe one network together"],
  ["--alpha 1e-6 --beta 0", '--beta: expected a number from 1e-12 to 8, got "0"'],
  ["--alpha 1e999 --beta 1", '--alpha: expected a number from 0 to 3600, got "1e999"'],
  ["--ranks 1", '--ranks: expected a whole number from 2 to 1000000, such as 12, 4k or 1M, got "1"'],
  ["--ranks 1e9", "--ranks: expected a whole number from 2 to 1000000"],
  [
    "--parameters 350X",
    '--parameters: expected a whole number from 1 to 1000000000000, such as 350k, 774M or 7G, got "350X"',
  ],
  ["--parameters 1.5", "--parameters: expected a whole number"],
  ["--parameters 1e999", "--parameters: expected a whole number"],
  ["1gbit", "1gbit: cost takes flags only"],
  [
    "--value-bits 33",
    "--value-bits: a compressed value has no more bits than a word, and 33 is more than --word-bits 32",
  ],
  ["--link 1000001gbit", "--link: the rate of a link must be 1 bit to 1000000 gbit per second"],
  ["", '"": cost takes flags only'],
  ["--word-bits 1e30", "--word-bits: expected a whole number from 1 to 64"],
])("says what is wrong with %s", (words, sentence) => {
  expect(() => read(words.split(" "))).toThrow(sentence);
});

it("explains every flag", () => {
  expect(readArguments(["--link", "1gbit", "--help"])).toBe("help");
  for (const flag of ["link", "alpha", "beta", "parameters", "ranks", "word-bits", "value-bits", "svg", "json"])
    expect(usage).toContain(`--${flag} `);
});

it("marks the fastest, and says from which size on it is the fastest", () => {
  // P = 16 at 1 Gbit/s and 10 µs: the crossing of table-one.test.ts.
  const lines = tableText(project(read("--link 1gbit,10us --parameters 14k --ranks 16".split(" ")))[0]!);
  expect(lines).toMatch(/14 k parameters, 1 Gbit\/s, 10 µs\nranks .* 16\n/);
  expect(lines).toMatch(/direct all-reduce of counts .*\*2\d\d µs\n/);
  expect(lines).toMatch(/direct beats compressed below .* 14\.8 k\n/);
  const more = tableText(project(read("--link 1gbit,10us --parameters 16k --ranks 16".split(" ")))[0]!);
  expect(more).toMatch(/compressed: .*\*2\d\d µs\n/);
});

it("shows fewer numbers of ranks on a narrow terminal", () => {
  const panel = project(read([]))[0]!;
  const widest = (columns: number) =>
    Math.max(
      ...tableText(panel, columns)
        .split("\n")
        .map((line) => line.length),
    );
  expect(tableText(panel, 80)).toMatch(/ranks +8 +64 +512 +4096\n/);
  expect(widest(80)).toBeLessThanOrEqual(80);
  expect(widest(120)).toBeGreaterThan(80);
});

it("draws a line for each implementation in each panel, higher where it takes longer", () => {
  const panels = project(read("--link 10gbit,10us --parameters 1M --parameters 1G --ranks 8".split(" ")));
  const svg = picture(panels);
  const ends = [...svg.matchAll(/aria-label="line"><path d="M[^"]*,([\d.]+)"/g)].map(([, y]) => Number(y));
  expect(ends).toHaveLength(2 * 6);
  const of = (panel: number) => Object.values(panels[panel]!.seconds).map((times) => times.at(-1)!);
  for (const panel of [0, 1]) {
    const byTime = of(panel).map((time, i) => [time, ends[6 * panel + i]!] as const);
    byTime.sort(([a], [b]) => a - b);
    for (const [i, [, y]] of byTime.entries()) if (i > 0) expect(y).toBeLessThanOrEqual(byTime[i - 1]![1]);
  }
});

it("puts one number of parameters into each row of panels, for any number of networks", () => {
  const rows = (networks: number) => {
    const links = Array.from({ length: networks }, (_, i) => ["--link", `${i + 1}gbit`]).flat();
    const svg = picture(project(read([...links, "--ranks", "2"])));
    const heads = [...svg.matchAll(/translate\(\d+ (\d+)\)"><text y="-10" font-weight="600">(\S+) M /g)];
    return Map.groupBy(heads, ([, y]) => y);
  };
  for (const networks of [1, 2, 3, 4, 5, 6])
    for (const row of rows(networks).values()) expect(new Set(row.map(([, , count]) => count)).size).toBe(1);
  expect([1, 2, 3, 4, 5, 6].map((networks) => rows(networks).size)).toEqual([2, 2, 2, 4, 10, 4]);
});

it("draws the picture in docs/results", () => {
  const recorded = readFileSync(new URL("../../../../docs/results/vote-costs.svg", import.meta.url), "utf8");
  expect(picture(project(read([])))).toBe(recorded);
});

it("writes times and counts with units", () => {
  expect([2e-13, 5e-9, 0.0000123, 0.00123, 0.9999, 1.5, 123.4, 9999, 325_067, 1.6e8].map(secondsText)).toEqual([
    "2e-4 ns",
    "5.0 ns",
    "12 µs",
    "1.2 ms",
    "1000 ms",
    "1.5 s",
    "123 s",
    "9999 s",
    "325 ks",
    "1.6e5 ks",
  ]);
  expect([999, 1000, 14_790, 999_600, 774e6, 7e9].map(countText)).toEqual([
    "999",
    "1 k",
    "14.8 k",
    "1 M",
    "774 M",
    "7 G",
  ]);
});

it("ends with one line where what it prints, or a file, goes to a full disk", () => {
  const main = new URL("main.ts", import.meta.url).pathname;
  const full = openSync("/dev/full", "w");
  const run = (stdout: number | "pipe", ...argv: string[]) =>
    spawnSync(process.execPath, ["--conditions=@terse/source", main, ...argv], {
      stdio: ["ignore", stdout, "pipe"],
      encoding: "utf8",
    });
  const printed = run(full);
  expect(printed.stderr).toMatch(/^error: standard output cannot be written: ENOSPC.*\n$/);
  expect(printed.status).toBe(1);
  const written = run("pipe", "--json=/dev/full");
  expect(written.stderr).toBe("error: --json: /dev/full cannot be written: no space is left on its disk\n");
  expect(written.status).toBe(1);
  closeSync(full);
});
