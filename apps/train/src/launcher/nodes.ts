/**
 * The launchers of several machines, which are a world of their own: a machine's rank in it is its `--node-rank`, and
 * its rendezvous is at `--rdzv-endpoint`. They tell each other where the ranks' rendezvous is, and how the ranks ended.
 */

import { isObject } from "@terse/checkpoint";
import { type Group, joinWorld, RankLostError, type RendezvousError } from "@terse/collectives";
import { gatherJson } from "../gather-json.ts";
import type { Place } from "./flags.ts";

export interface Nodes extends AsyncDisposable {
  /** Resolves to what each machine's launcher told, by node rank. */
  tell<T>(mine: T): Promise<T[]>;
}

const alone: Nodes = { tell: async (mine) => [mine], [Symbol.asyncDispose]: async () => {} };
/** Where the launchers meet, and how long they wait. */
export interface Meeting extends Pick<Place, "nnodes" | "nodeRank" | "rdzvEndpoint"> {
  readonly deadline: number;
  readonly outage?: number | undefined;
}

/** Seconds for which launchers wait for each other after they have met: while ranks train. */
const forever = 1e6;

export async function joinNodes({ nnodes, nodeRank, rdzvEndpoint, deadline, outage }: Meeting): Promise<Nodes> {
  if (nnodes === 1) return alone;
  const { host, port } = rdzvEndpoint!; // the arguments have been checked
  const env = {
    RANK: `${nodeRank}`,
    WORLD_SIZE: `${nnodes}`,
    MASTER_ADDR: host,
    MASTER_PORT: `${port}`,
    TERSE_TOKEN: process.env["TERSE_TOKEN"],
    TERSE_ADDRESS: process.env["TERSE_ADDRESS"],
    TERSE_OUTAGE: process.env["TERSE_OUTAGE"],
    TERSE_EPOCH: "launchers",
  };
  const group = await joinWorld({
    env,
    engine: "tcp",
    deadlineSeconds: deadline,
    outageSeconds: outage,
    timeoutSeconds: forever,
  }).catch((error: RendezvousError) => {
    throw new Error(`the launchers did not meet; here, rank means --node-rank: ${withFlags(error.message)}`, {
      cause: error,
    });
  });
  return {
    tell: (mine) => told(group, mine),
    [Symbol.asyncDispose]: () => group.close(),
  };
}

/** The launchers' rendezvous names variables, which users have set by flags. */
function withFlags(message: string): string {
  const flags = [
    [/MASTER_ADDR and MASTER_PORT, or TERSE_RENDEZVOUS, are/g, "--rdzv-endpoint is"],
    [/MASTER_PORT, or --rdzv-endpoint/g, "--rdzv-endpoint"],
    [/\b(MASTER_ADDR|MASTER_PORT|TERSE_RENDEZVOUS)\b/g, "--rdzv-endpoint"],
    [/\bWORLD_SIZE\b/g, "--nnodes"],
    [/\bRANK\b/g, "--node-rank"],
  ] as const;
  return flags.reduce((text, [variable, flag]) => text.replaceAll(variable, flag), message);
}

async function told<T>(group: Group, mine: T): Promise<T[]> {
  try {
    return await gatherJson(group, mine, (value) => value === null || isObject(value));
  } catch (error) {
    if (!(error instanceof RankLostError)) throw error;
    throw new Error(`the launcher of node ${error.rank} is lost; start the run again on all machines`, {
      cause: error,
    });
  }
}
