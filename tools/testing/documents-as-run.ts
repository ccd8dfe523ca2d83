/**
 * Runs the commands of the READMEs and of docs/ as they stand there, in one folder, with sizes for a test added; or a
 * table says why not.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { chmodSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, expect, it } from "vitest";
import { freePort } from "../../test-e2e/ranks/start-ranks.ts";
import { argumentsOf, programs } from "../programs.ts";
import { root } from "../toolchain.ts";
import { type ShellLine, shellLinesIn } from "./commands-in.ts";

const small = "--steps=2 --data.batchSize=1 --evaluate.windows=1 --sample.bytes=1";
const tiny = `${small} --model.preset=tiny --model.width=16 --model.layers=1 --model.heads=1 --nproc-per-node=1`;
const nano = `${small} --model.preset=nano --model.width=32 --model.layers=1 --model.heads=1 --data=text.txt`;
const oneRank = `${nano} --nproc-per-node=1`;
const oneOfTwo = `${oneRank} --rdzv-endpoint=127.0.0.1:$port`;

const asJob = 'jobs="$jobs $!"';

/** How the lines run that an expression matches. */
export interface Way {
  is: RegExp;
  /** Further arguments of ./terse. */
  added?: string;
  /** What another machine, or somebody else, has done: shell before the line. */
  first?: string;
  /** beside: while the next lines run; untilTold: until it has printed an address. */
  runs?: "beside" | "untilTold";
  /** Why this test does not run the line. */
  never?: string;
  /** The test that runs it instead, in a form for one machine, and words of it that are there. */
  by?: readonly [file: string, ...words: string[]];
}

/** Each line goes the first way that fits. */
export const ways: readonly Way[] = [
  { is: /^\.\/terse test\b/, never: "takes minutes; this test is part of it" },
  { is: /^\.\/terse setup$/, never: "is what ./terse test does before its tests" },
  { is: /^\.\/terse netlab .*--init-from my\/base/, added: small },
  { is: /^\.\/terse netlab /, never: "needs root", by: ["tools/netlab/netlab.test.ts", "netlab"] },
  {
    is: /^eval "\$\(\.\/terse env\)" && \.\/terse build|^pnpm .* pack/,
    never: "builds for minutes; ./terse release does",
  },
  {
    is: /^\(echo overrides:.*pnpm add/,
    never: "fetches from a registry",
    by: ["tools/publish/oldest-node.test.ts", "echo overrides:", "pnpm-workspace.yaml"],
  },
  { is: /npm install/, never: "fetches from a registry; ./terse release does" },
  {
    is: /^pip install/,
    never: "fetches from a registry",
    by: ["packages/codecs/src/testing/python-wheel.ts", "pip", "wheel"],
  },
  {
    is: /^torchrun .*ddp_vote\.py/,
    never: "the model is small there",
    by: ["packages/codecs/python/tests/test_ddp_vote.py", "ddp_vote.vote_hook"],
  },
  {
    is: /^torchrun --nproc-per-node 2 train\.py/,
    never: "its program runs in the tests of terse_torch",
    by: ["packages/codecs/torch/torch.test.ts", "torch.distributed.run"],
  },
  {
    is: /^torchrun .*--nnodes=1:4 /,
    never: "several machines",
    by: ["test-e2e/runs/recovery.test.ts", "torch.distributed.run", "--nnodes=1:4", "--resume=auto"],
  },
  {
    is: /^torchrun .*\.\/terse train/,
    never: "several machines",
    by: ["test-e2e/ranks/launchers.test.ts", "torch.distributed.run", "--nnodes=2", "--rdzv-backend=c10d"],
  },
  {
    is: /^srun .*\.\/terse train/,
    never: "several machines",
    by: ["test-e2e/ranks/launchers.test.ts", '"srun", "-n", "2"'],
  },
  {
    is: /^sbatch /,
    never: "needs Slurm",
    by: ["test-e2e/runs/requeue.test.ts", '"sbatch"', "docs/launching/train.sbatch"],
  },
  {
    is: /^mpirun /,
    never: "several machines, or more cores",
    by: ["test-e2e/ranks/mpirun.test.ts", "--bind-to", "TERSE_ENGINE"],
  },
  { is: /^kubectl /, never: "needs a cluster", by: ["apps/train/src/launcher/launching.test.ts", "pytorchjob.yaml"] },
  { is: /^ssh /, never: "needs another machine" },
  {
    is: /^for rank in 0 1; .* node train\.ts/,
    never: "needs the packages beside the program",
    by: ["test-e2e/ranks/own-program.test.ts", "docs/how-to/train-your-own-model.md", '"bash"'],
  },
  {
    is: /prepare (tinyshakespeare|fineweb|sst2)/,
    never: "needs a network",
    by: ["packages/data/src/prepare/prepare.test.ts", "createServer"],
  },
  {
    is: /^cmake -S native\/codecs -B|^cc example\.c/,
    never: "installs for all users",
    by: [
      "native/codecs/src/library.test.ts",
      '"cmake", "--install"',
      '"pkg-config", "--cflags", "--libs", "terse-codecs"',
    ],
  },
  { is: /^ldconfig$/, never: "needs root, and changes the machine" },
  {
    is: /^cmake -S native\/codecs\/cuda/,
    never: "compiles for minutes",
    by: ["native/codecs/src/cuda.test.ts", '"cmake"'],
  },
  {
    is: /^cmake -S native\/optimizers\/cuda/,
    never: "compiles for minutes",
    by: ["native/optimizers/src/cuda.test.ts", '"cmake"'],
  },
  { is: /^\.\/terse train --device=cuda/, never: "needs a GPU", by: ["apps/train/src/device.test.ts", "cuda"] },

  { is: /^export \w+=/ },
  { is: /^\.\/terse docs$/, added: "pages" },
  { is: /^(source <\()?\.\/terse (doctor|help|cost|config|completion|data (prepare|look)) ?/ },
  { is: /^\.\/terse train .*--dry-run/ },
  {
    is: /^\.\/terse bench convergence --data/,
    // Its search takes twenty runs for each method.
    added:
      "--settings=adamw --steps=2 --schedule.warmup=1 --model.context=16 --model.width=16 --model.layers=1 --model.heads=1",
  },
  { is: /^\.\/terse sample/, added: "--bytes=1" },
  {
    is: /^\.\/terse compare runs\/A/,
    first: "for run in A C; do cp -rT runs/dense runs/$run; done; cp -rT runs/one-bit runs/B",
  },
  {
    is: /^\.\/terse sweep .*--resume /,
    first: `./terse sweep gpt-small-adamw ${oneRank} --optimizer.lr=1e-3,2e-3 --out runs/rates`,
  },
  { is: /^\.\/terse sweep .*--dry-run/ },
  { is: /^\.\/terse sweep/, never: "many runs", by: ["test-e2e/runs/sweep.test.ts", "--seeds=2", "--optimizer.lr="] },
  { is: /^\.\/terse advise$/, first: "cp -r runs/first runs/newest" }, // a run of two steps has measured no network
  {
    is: /^\.\/terse eval runs\/base/,
    first: `./terse train ${oneRank} --out=runs/base`,
    added: "--evaluate.windows=2",
  },
  { is: /^\.\/terse eval/, added: "--evaluate.windows=2" },
  { is: /^\.\/terse (advise|compare|export)/ },
  {
    is: /^\.\/terse page runs\/a/,
    first: "cp -r runs/gpt2 runs/a; cp -r runs/two-machines runs/b",
    added: "--address=127.0.0.1:0",
    runs: "untilTold",
  },
  { is: /^\.\/terse page/, added: "--address=127.0.0.1:0", runs: "untilTold" },

  { is: /node-rank 0 .*--out runs\/two-machines/, added: oneOfTwo, runs: "beside" },
  { is: /node-rank 1 .*--out runs\/two-machines/, added: oneOfTwo },
  {
    is: /node-rank 0 .*--resume runs\/two-machines/,
    first: `./terse train --nnodes=2 --node-rank=1 --resume runs/two-machines ${oneOfTwo} --steps=52 & ${asJob}`,
    added: `${oneOfTwo} --steps=52`, // which measures the network
  },
  { is: /--nnodes=2/, never: "docs/how-to/train-on-two-machines.md has the same lines" },
  {
    is: /^RANK=0 WORLD_SIZE=2 /,
    first: `RANK=1 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port ./terse train ${nano} & ${asJob}`,
    added: nano,
  },

  { is: /llama-small/, added: `${small} --nproc-per-node=1 --model.width=32 --model.layers=1 --data=text.txt` },
  { is: /--trace/, added: `${oneRank} --steps=8` }, // it begins with the sixth
  { is: /--data\.name=tokens/, added: `${tiny} --out=runs/gpt2` },
  { is: /--init-from gpt2 .*TEXT$/, first: "./terse export runs/gpt2 --out gpt2", added: tiny },
  { is: /--init-from gpt2/, added: tiny },
  {
    is: /--init-from my\/model .*my\/rows\.jsonl/,
    first: "./terse export runs/gpt2 --out my/model; cp chat_template.jinja my/model",
    added: tiny,
  },
  { is: /--init-from my\/model/, added: tiny },
  {
    is: /--init-from vit-base/,
    first: `./terse train deit-tiny-cifar ${small} --model.width=48 --model.layers=1 --nproc-per-node=1 --out=runs/vit; ./terse export runs/vit --out vit-base`,
    added: `${small} --nproc-per-node=1`,
  },
  { is: /--init-from my\/adapter/, added: tiny },
  { is: /--init-from my\/lora/, added: `${small} --nproc-per-node=1` },
  { is: /--init-from runs\/mine/, first: "cp -r runs/gpt2 runs/mine", added: tiny },
  { is: /--model\.name=(gpt2|bert-classifier)/, added: tiny },
  { is: /--recipe resnet18-cifar/, added: `${small} --nproc-per-node=1 --model.width=4` },
  { is: /--out runs\/first/, added: `${nano} --steps=50` }, // which measures the network
  { is: /^\.\/terse train .*(--emulate-link|--exchange\.vote=auto)/, added: nano },
  { is: /^\.\/terse train/, added: oneRank },
];

export interface Document {
  readonly file: string; // from the root
  readonly lines: readonly ShellLine[];
}

const isLast = (document: string) => document === "README.md" || document === "docs/commands.md";

/** Those with commands. */
export const documents: readonly Document[] = globSync(
  ["README.md", "docs/**/*.md", "{packages,apps,native}/**/README.md"],
  {
    cwd: root,
    exclude: (path) => /(^|\/)(node_modules|build|dist)$/.test(path),
  },
)
  .sort((a, b) => Number(isLast(a)) - Number(isLast(b)) || a.localeCompare(b, "en")) // after what their lines need
  .map((file) => ({ file, lines: shellLinesIn(readFileSync(join(root, file), "utf8")) }))
  .filter(({ lines }) => lines.length > 0);
export const wayOf = (text: string): Way | undefined => ways.find(({ is }) => is.test(text));

/**
 * ./terse for readers, which runs a program at once: there is nothing to set up, and looking for it would take half the
 * test's time.
 */
const terseFor = (onHosts: boolean) => [
  "#!/bin/sh",
  "case $1 in",
  ...Object.entries(programs).map(
    ([name, program]) => `${name}) shift; exec "$node" ${argumentsOf(program, [name]).join(" ")} "$@" $added ;;`,
  ),
  onHosts
    ? `netlab) exec ${root}/terse "$@" ;;`
    : `netlab) while [ "$1" != -- ]; do shift; done; shift; exec "$@" --nproc-per-node=2 ;;`,
  `*) exec ${root}/terse "$@" $added ;;`,
  "esac",
];

/** Bash that runs the lines, each once in all documents (`done`), and ends at the first that fails. */
function scriptOf(lines: readonly ShellLine[], done: Set<string>): string {
  const script = ["trap 'echo \"line $line failed\" >&2; exit 1' ERR", "jobs="];
  for (const { line, text } of lines) {
    const { added = "", first = "", runs, never } = wayOf(text)!;
    if (never !== undefined || done.has(text)) continue;
    done.add(text);
    const here = text.replaceAll("10.0.0.1", "127.0.0.1").replace("29500", "$port");
    script.push(`line=${line}`, "export added=", first, `added="${added}"`);
    if (runs === undefined) script.push(here);
    // Bash opens the file in the child: without rm the text of an earlier line would still be there to find.
    else script.push("rm -f told", `${here} > told &`, asJob);
    if (runs === "untilTold") script.push("until grep -qs http: told; do kill -0 $!; sleep 0.1; done", "kill $!");
  }
  return [...script, "for job in $jobs; do wait $job; done"].join("\n");
}

/**
 * Tests that the commands of these documents end without an error, in a folder as the documents' readers have it: the
 * repository, and data of their own. Without `onHosts` the two ranks of `./terse netlab` run as they are.
 */
export function testCommandsOf(documents: readonly Document[], onHosts: boolean): void {
  const folder = mkdtempSync(join(tmpdir(), "terse-documents-"));
  const started: ChildProcess[] = [];
  let port: number;

  beforeAll(async () => {
    port = await freePort();
    const put = (file: string, content: string | Uint8Array) => {
      mkdirSync(dirname(join(folder, file)), { recursive: true });
      writeFileSync(join(folder, file), content);
    };
    const text = "the quick brown fox jumps over the lazy dog. ".repeat(1000);
    for (const file of ["text.txt", "TEXT", "my/text/a.txt", "my/texts/a.txt", "docs/how-to/a.md"]) put(file, text);
    const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";
    for (const at of ["my/pictures", "PICTURES"])
      for (const name of ["cat/1", "cat/2", "cat/3", "cat/4", "cat/5", "dog/1", "dog/2", "dog/3", "dog/4", "dog/5"])
        put(`${at}/${name}.png`, Buffer.from(pixel, "base64"));
    for (const part of ["train", "dev"])
      put(`CoLA/${part}.tsv`, `gj04\t1\t\tThe fox jumps.\ngj04\t0\t*\tThe jumps fox.\n`.repeat(8));
    const pairs = ["neutral", "entailment", "contradiction"].map((label) => `A fox.\tA dog.\t${label}\n`);
    for (const part of ["train", "dev_matched"])
      put(`MNLI/${part}.tsv`, `sentence1\tsentence2\tgold_label\n${pairs.join("").repeat(8)}`);
    for (const part of [...[1, 2, 3, 4, 5].map((i) => `data_batch_${i}`), "test_batch"])
      put(`data/cifar-10-batches-bin/${part}.bin`, new Uint8Array(8 * (1 + 3 * 32 * 32)));
    const said = (role: string, content: string) => ({ role, content });
    const messages = [said("user", "A fox?"), said("assistant", "It jumps.")];
    const instructed = { instruction: "What does it do?", context: "The fox jumps.", response: "It jumps." };
    for (const [file, row] of Object.entries({
      "rows.jsonl": { messages },
      "my/rows.jsonl": { messages },
      "dolly.jsonl": instructed,
    }))
      put(file, `${JSON.stringify(row)}\n`.repeat(20));
    put("chat_template.jinja", "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: ");
    // The arguments that a test adds are behind the line's own, and win.
    put("terse", `${terseFor(onHosts).join("\n")}\n`);
    chmodSync(join(folder, "terse"), 0o755);
  });

  afterAll(() => {
    for (const { pid } of started)
      try {
        process.kill(-pid!, "SIGKILL"); // with what it has started
      } catch {
        // has ended
      }
    rmSync(folder, { recursive: true, force: true });
  });

  const done = new Set<string>();
  it.each(documents)("of $file end without an error", async ({ lines }) => {
    const bash = spawn("bash", ["-c", scriptOf(lines, done)], {
      cwd: folder,
      env: { ...process.env, node: process.execPath, port: String(port), OMP_NUM_THREADS: "1" },
      detached: true,
    });
    started.push(bash);
    let output = "";
    for (const stream of [bash.stdout, bash.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    const code = await new Promise((resolve) => bash.on("close", resolve));
    expect(code, output).toBe(0);
  });
}
