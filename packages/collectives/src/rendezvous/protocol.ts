/**
 * The protocol of the rendezvous: one JSON object per line, UTF-8, in both directions.
 *
 *   rank → server   hello, once, as the first line; then requests (set, get, allGather, allToAll, leave), abort, bye
 *   server → rank   welcome or refused; then one answer per request, and notifications: left, failure
 *
 * Each rank opens a second connection, with `beat: true` in its hello, for its heartbeat: an empty line at regular
 * intervals.
 */

export const protocolVersion = 3;
export const helloLimit = 4096; // bytes of a connection's first line
export const lineLimit = 4 << 20; // bytes of any other line
/** The key that the server sets when it first hears this rank's heartbeat. */
export const heartbeatOf = (rank: number) => `the heartbeat of rank ${rank}`;

export interface Hello {
  terse: number; // protocol version
  token: string;
  epoch: string; // attempt of the launcher: a process of an earlier attempt must not join
  rank: number;
  size: number;
  config: string; // must be the same on all ranks
  pid: number;
  host: string;
  beat?: boolean;
}

export type Request =
  | { id: number; do: "set"; key: string; value: unknown }
  | { id: number; do: "get"; key: string }
  | { id: number; do: "allGather"; key: string; members: number[]; value: unknown }
  | { id: number; do: "allToAll"; key: string; members: number[]; values: unknown[] }
  | { id: number; do: "leave"; group: string; members: number[]; value: unknown };

export type AbortReason = "mismatch" | "aborted" | "timeout" | "transport" | "device";
export type Abort = { do: "abort"; group: string; reason: AbortReason; message: string };
export type Bye = { do: "bye" };
export type FromRank = Request | Abort | Bye;

/** Why a group, or the whole world, has failed. The server reports the first failure to all ranks. */
export type GroupFailure =
  | { kind: "lost"; rank: number; message: string }
  | { kind: "missing"; ranks: number[]; message: string }
  | { kind: "refused"; message: string }
  | { kind: "abort"; group: string; reason: AbortReason; message: string };

/** The group, split from the world, that has failed alone; undefined where the world has. */
export const innerGroupOf = (failure: GroupFailure): string | undefined =>
  failure.kind === "abort" && failure.group !== "world" ? failure.group : undefined;

export type FromServer =
  // holder: the rank whose process runs this server; deadlineSeconds null: no deadline
  | { welcome: true; holder: number | null; outageSeconds: number; deadlineSeconds: number | null }
  | { refused: string }
  | { id: number; value: unknown }
  | { id: number; error: string; missing: number[] }
  | { left: string; rank: number; value: unknown }
  | { failure: GroupFailure };
