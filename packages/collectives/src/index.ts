export {
  type BufferLike,
  type DType,
  type NativeBuffer,
  type RetainedBuffer,
  retain,
  type TypedArray,
} from "@terse/native-collectives";
export { average } from "./average.ts";
export * from "./bytes.ts";
export { copy } from "./copy.ts";
export { endWithParent } from "./end-with-parent.ts";
export { DeviceBuffer } from "./engines/device-buffer.ts";
export { type EngineName, engineNames } from "./engines/engines.ts";
export { type Fault, type LoopbackOptions, loopback } from "./engines/loopback.ts";
export { findNccl } from "./engines/nccl.ts";
export type { NcclOptions } from "./engines/nccl-options.ts";
export { CollectiveError, type FailureReason, RankLostError, RendezvousError } from "./errors.ts";
export type { Collectives, Group, OperationOptions, PointToPoint, Reduction, Sent } from "./group.ts";
export { type JoinOptions, joinWorld } from "./join-world.ts";
export { type Link, linkText, parseLink } from "./link.ts";
export { answerHeartbeats, hostOf } from "./rendezvous/find-rendezvous.ts";
export { leastOutageSeconds, mostOutageSeconds } from "./rendezvous/outage.ts";
export type { GroupFailure } from "./rendezvous/protocol.ts";
export { serveRendezvous } from "./rendezvous/server.ts";
export type { RendezvousOptions, RendezvousServer } from "./rendezvous/server-options.ts";
export { readWorldEnvironment, type WorldEnvironment } from "./world-environment.ts";
