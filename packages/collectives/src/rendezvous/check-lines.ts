/**
 * What comes over a connection of the rendezvous is checked before it is used: each function says what is wrong with a
 * line, or returns undefined. The values that ranks exchange are checked by whoever asked for them.
 */
import { isCount, misfit, type Shape } from "./check-value.ts";
import { leastOutageSeconds, mostOutageSeconds } from "./outage.ts";
import type { AbortReason, FromRank } from "./protocol.ts";

const longestName = 1000; // characters of a key or of a group

const reasons: readonly AbortReason[] = ["mismatch", "aborted", "timeout", "transport", "device"];
const isReason = (value: unknown) => reasons.includes(value as AbortReason);
const isText = (value: unknown): value is string => typeof value === "string";
const isNumber = (value: unknown): value is number => typeof value === "number";
const isName = (value: unknown) => isText(value) && value.length <= longestName;
const isRank = (value: unknown) => isCount(value) && value <= 2 ** 31;

/** What is wrong with a request of rank `rank` in a world of `size`; undefined if nothing is. */
export function problemOfRequest(line: object, rank: number, size: number): string | undefined {
  const { do: name, id, key, group, members, values, reason, message } = line as Record<string, unknown>;
  switch (name as FromRank["do"]) {
    case "bye":
      return undefined;
    case "abort":
      if (!isName(group) || !isText(message)) return "an abort has no group or message";
      return isReason(reason) ? undefined : "an abort has no such reason";
    case "set":
    case "get":
    case "allGather":
    case "allToAll":
    case "leave":
      break;
    default:
      return "a request has an unknown name";
  }
  if (!isCount(id)) return `${name}: it has no number`;
  if (!isName(name === "leave" ? group : key)) return `${name}: it has no key`;
  if (name === "set" || name === "get") return undefined;
  if (
    !Array.isArray(members) ||
    members.length > size ||
    !members.includes(rank) ||
    !members.every((member) => isCount(member) && member < size) ||
    new Set(members).size < members.length
  )
    return `${name}: its members are not ranks of this world, or this rank is not among them`;
  if (name === "allToAll" && (!Array.isArray(values) || values.length !== members.length))
    return "allToAll: it must have one value per member";
  return undefined;
}

/** The server's answer to a hello. */
export function problemOfWelcome(line: object): string | undefined {
  const { refused, welcome, holder, outageSeconds, deadlineSeconds } = line as Record<string, unknown>;
  if (isText(refused)) return undefined;
  if (welcome !== true) return "it is neither welcome nor refused";
  if (holder !== null && !isRank(holder)) return "holder is no rank";
  if (!isNumber(outageSeconds) || outageSeconds < leastOutageSeconds || outageSeconds > mostOutageSeconds)
    return "outageSeconds is out of range";
  if (deadlineSeconds !== null && !(isNumber(deadlineSeconds) && deadlineSeconds > 0))
    return "deadlineSeconds is no time";
  return undefined;
}

/** A line of the server after its welcome. */
export function problemOfAnswer(line: object): string | undefined {
  const { id, error, missing, left, rank, failure } = line as Record<string, unknown>;
  if (id !== undefined) {
    if (!isCount(id)) return "an answer has no number";
    if (error === undefined) return undefined;
    return isText(error) && areRanks(missing) ? undefined : "an error has no text, or names no ranks";
  }
  if (left !== undefined) return isName(left) && isRank(rank) ? undefined : "no group or rank is named that has left";
  if (failure !== undefined) return isFailure(failure) ? undefined : "a failure has no kind, or does not say why";
  return undefined; // a line that this version does not know
}

const areRanks = (value: unknown) => Array.isArray(value) && value.every(isRank);

const failures = new Map<unknown, Shape>([
  ["lost", { rank: isRank }],
  ["missing", { ranks: areRanks }],
  ["refused", {}],
  ["abort", { group: isName, reason: isReason }],
]);

const isFailure = (value: unknown): boolean => {
  const shape = failures.get((value as { kind?: unknown } | null)?.kind);
  return shape !== undefined && misfit(value, { message: isText, ...shape }) === undefined;
};
