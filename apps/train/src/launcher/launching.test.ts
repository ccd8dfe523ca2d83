/** docs/launching.md and the files that it names, as far as they can be checked without Slurm and Kubernetes. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readWorldEnvironment } from "@terse/collectives";
import { parseYaml } from "@terse/options";
import { describe, expect, it } from "vitest";
import { readArguments } from "../arguments.ts";
import { launcherFlags } from "./flags.ts";

const docs = new URL("../../../../docs/", import.meta.url);
const read = (file: string) => readFileSync(new URL(file, docs), "utf8");
/** The arguments of ./terse in a command line, without what the shell makes of them. */
const argumentsIn = (line: string) => /\.\/terse (.*?)(?: +#.*)?$/.exec(line)![1]!.replaceAll('"', "").split(/ +/);

interface Pod {
  readonly replicas: number;
  readonly template: {
    readonly spec: {
      readonly securityContext: { readonly runAsNonRoot: boolean; readonly fsGroup: number };
      readonly volumes: readonly { readonly name: string; readonly emptyDir?: object }[];
      readonly containers: readonly {
        readonly command: readonly string[];
        readonly env: readonly { readonly name: string }[];
        readonly ports: readonly { readonly name: string; readonly containerPort: number }[];
        readonly volumeMounts: readonly { readonly name: string; readonly mountPath: string }[];
        readonly resources: { readonly requests: object; readonly limits: object };
      }[];
    };
  };
}
interface Job {
  readonly metadata: { readonly name: string };
  readonly spec: {
    readonly nprocPerNode: string;
    readonly pytorchReplicaSpecs: { readonly Master: Pod; readonly Worker: Pod };
  };
}

describe("the job for Kubeflow's training operator", () => {
  const { metadata, spec } = parseYaml(read("launching/pytorchjob.yaml"), "pytorchjob.yaml") as Job;
  const { Master, Worker } = spec.pytorchReplicaSpecs;
  const pods = [Master, ...Array.from({ length: Worker.replicas }, () => Worker)];

  it.each([0, 1])("starts the ranks of pod %i with what the operator sets there", (index) => {
    const [container] = pods[index]!.template.spec.containers;
    const { command, env, ports, volumeMounts } = container!;
    const port = `${ports.find(({ name }) => name === "pytorchjob-port")!.containerPort}`;
    const master = `${metadata.name}-master-0`;
    // The operator sets MASTER_…, RANK and WORLD_SIZE since its first version, PET_… since 1.7.
    const set = {
      PET_NNODES: `${pods.length}`,
      PET_NPROC_PER_NODE: spec.nprocPerNode,
      PET_NODE_RANK: `${index}`,
      PET_MASTER_ADDR: master,
      PET_MASTER_PORT: port,
      MASTER_ADDR: master,
      MASTER_PORT: port,
      RANK: `${index}`,
      WORLD_SIZE: `${pods.length * Number(spec.nprocPerNode)}`,
    };
    const args = readArguments(command.slice(1), set);
    if (typeof args === "string" || args.command !== "train") throw new Error("it trains nothing");
    const { nnodes, nprocPerNode, nodeRank, rdzvEndpoint, isLauncher, resume, out } = args;
    expect({ nnodes, nprocPerNode, nodeRank, rdzvEndpoint, isLauncher, resume }).toEqual({
      nnodes: 2,
      nprocPerNode: 4,
      nodeRank: index,
      rdzvEndpoint: { host: master, port: Number(port) },
      isLauncher: true,
      resume: "auto",
    });
    expect(readWorldEnvironment(set).launcher).toBeDefined(); // and yet it is no rank
    expect(env.map(({ name }) => name)).toContain("TERSE_TOKEN");
    expect(volumeMounts.some(({ mountPath }) => out!.startsWith(mountPath))).toBe(true);
  });
});

describe("the pods of the job", () => {
  it("are limited to what they ask for, and have memory that ranks share", () => {
    const { spec } = parseYaml(read("launching/pytorchjob.yaml"), "pytorchjob.yaml") as Job;
    for (const { template } of Object.values(spec.pytorchReplicaSpecs) as Pod[]) {
      const [{ resources, volumeMounts }] = template.spec.containers as [Pod["template"]["spec"]["containers"][0]];
      expect(resources.limits).toEqual(resources.requests);
      const { name } = volumeMounts.find(({ mountPath }) => mountPath === "/dev/shm")!;
      expect(template.spec.volumes.find((volume) => volume.name === name)).toMatchObject({
        emptyDir: { medium: "Memory" },
      });
    }
  });

  it("run as the image's user, who may write to their volumes", () => {
    const image = readFileSync(new URL("../Containerfile", docs), "utf8");
    const { spec } = parseYaml(read("launching/pytorchjob.yaml"), "pytorchjob.yaml") as Job;
    for (const pod of Object.values(spec.pytorchReplicaSpecs) as Pod[])
      expect(pod.template.spec.securityContext).toMatchObject({
        runAsNonRoot: true,
        fsGroup: Number(/^USER (\d+)$/m.exec(image)![1]),
      });
  });
});

describe("the batch script for Slurm", () => {
  const script = read("launching/train.sbatch");
  const options = Object.fromEntries([...script.matchAll(/^#SBATCH --([\w-]+)=?(.*)$/gm)].map(([, k, v]) => [k, v]));

  // test-e2e/runs/requeue.test.ts runs it with a small model, where there is a Slurm.
  it("trains in the job's folder with --resume auto, and appends to one output", () => {
    const [line] = /^srun .*$/m.exec(script)!;
    expect(readArguments(argumentsIn(line), {})).toMatchObject({ resume: "auto", isLauncher: false });
    expect(options).toMatchObject({ requeue: "", "open-mode": "append", signal: expect.stringMatching(/^TERM@\d+$/) });
  });

  it("gives every task its cores, which srun does not take from the job from Slurm 22.05 on", () => {
    const bin = mkdtempSync(join(tmpdir(), "terse-srun-"));
    // srun(1): the variable is --cpus-per-task.
    const srun = '#!/bin/sh\necho "$SRUN_CPUS_PER_TASK $OMP_NUM_THREADS $TERSE_TOKEN"\n';
    writeFileSync(join(bin, "srun"), srun, { mode: 0o755 });
    writeFileSync(join(bin, "openssl"), "#!/bin/sh\necho secret\n", { mode: 0o755 });
    const env = { PATH: `${bin}:${process.env["PATH"]}`, SLURM_JOB_ID: "7", SLURM_CPUS_PER_TASK: "6" };
    const { stdout, stderr } = spawnSync("bash", ["-c", script], { env, encoding: "utf8" });
    rmSync(bin, { recursive: true });
    expect(stdout, stderr).toBe("6 6 secret\n");
  });

  it("gives ranks what they join by: srun's variables, on the first node of the step", () => {
    const size = Number(options["nodes"]) * Number(options["ntasks-per-node"]);
    const step = { SLURM_JOB_ID: "7", SLURM_STEP_ID: "0", SLURM_NODEID: "1", SLURM_STEP_NODELIST: "node[3-4]" };
    const tasks = {
      SLURM_STEP_NUM_TASKS: `${size}`,
      SLURM_STEP_TASKS_PER_NODE: `${options["ntasks-per-node"]}(x${options["nodes"]})`,
      SLURM_PROCID: "5",
      SLURM_LOCALID: "1",
      TERSE_TOKEN: "secret",
    };
    expect(readWorldEnvironment({ ...step, ...tasks })).toMatchObject({
      launcher: "Slurm",
      rank: 5,
      size: 8,
      localRank: 1,
      localSize: 4,
      token: "secret",
      master: { host: "node3" },
    });
    expect(script).toContain("export TERSE_TOKEN=");
  });
});

describe("the page on launching", () => {
  const page = read("launching.md");

  it("names every flag of the launcher", () => {
    for (const name of Object.keys(launcherFlags))
      expect(page).toContain(`| \`--${name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`);
  });
});
