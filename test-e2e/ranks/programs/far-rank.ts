/** A rank that does what it is told over a socket: see far-groups.ts. Argument: the port. */
import { connect } from "node:net";
import { type CollectiveError, type Group, joinWorld, type RankLostError, type TypedArray } from "@terse/collectives";
import { collectives } from "@terse/native-collectives";
import type { Answer, FarError } from "../far-groups.ts";
import { talk } from "../talk.ts";

interface Asked {
  readonly call: number;
  readonly group: number;
  readonly method: string;
  readonly given: readonly unknown[];
  readonly contents: readonly (readonly [id: number, bytes: Uint8Array])[];
}
type Heard = Asked | { readonly forget: number } | { readonly abort: number; readonly reason: string };

const buffers = new Map<number, ArrayBuffer>();
const controllers = new Map<number, AbortController>();
const groups: Group[] = [];
const errors: Error[] = [];
const nothing = { bytes: 0, messages: 0, headerBytes: 0 };

const controllerOf = (id: number) => {
  const controller = controllers.get(id) ?? new AbortController();
  controllers.set(id, controller);
  return controller;
};

/** What a call is given, here; `used` and `signal` are what it holds of buffers and signals. */
class Given {
  readonly used = new Set<number>();
  signal: AbortSignal | undefined;

  decode = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(this.decode);
    if (typeof value !== "object" || value === null) return value;
    if ("view" in value) {
      const [id, type, offset, length] = value.view as [number, string, number, number];
      this.used.add(id);
      const View = (globalThis as never)[type] as new (...from: unknown[]) => TypedArray;
      return new View(buffers.get(id), offset, length);
    }
    if ("signal" in value && typeof value.signal === "number") return this.#take(value.signal);
    const here = Object.fromEntries(Object.entries(value).map(([key, each]) => [key, this.decode(each)]));
    return "array" in here ? { ...here, pointer: collectives().addressOf(here["array"] as TypedArray) } : here;
  };

  #take(id: number): AbortSignal {
    this.signal = controllerOf(id).signal;
    return this.signal;
  }
}

const say = talk<Heard>(connect(Number(process.argv[2]), "127.0.0.1"), (heard) => {
  if ("forget" in heard) return void buffers.delete(heard.forget);
  // Where it was thrown, an abort is its error's message; as a text it is a text.
  if ("abort" in heard) return controllerOf(heard.abort).abort(heard.reason);
  void answer(heard);
});

async function answer({ call, group, method, given, contents }: Asked): Promise<void> {
  for (const [id, bytes] of contents) buffers.set(id, new Uint8Array(bytes).buffer);
  const here = new Given();
  const words = given.map(here.decode);
  const reply: { -readonly [key in keyof Answer]: Answer[key] } = { call, sent: nothing, contents: [] };
  try {
    const on = groups[group] as unknown as Record<string, (...words: unknown[]) => unknown>;
    const result = await (method === "join" ? joinWorld(words[0] as never) : on[method]!(...words));
    if (typeof result === "object" && result !== null && "allReduce" in result) {
      const made = result as Group;
      reply.group = { id: groups.push(made) - 1, rank: made.rank, size: made.size, engine: made.engine };
    } else {
      reply.result = result;
    }
  } catch (error) {
    reply.error =
      here.signal?.aborted && error === here.signal.reason ? { ofSignal: true } : told(error as Error, here);
  }
  reply.sent = groups[reply.group?.id ?? group]?.sent() ?? nothing;
  reply.contents = [...here.used].map((id) => [id, new Uint8Array(buffers.get(id)!)]);
  say(reply);
}

function told(error: Error, { signal }: Given): FarError {
  const known = errors.indexOf(error);
  const id = known < 0 ? errors.push(error) - 1 : known;
  const { name, message, reason, rank } = error as CollectiveError & RankLostError;
  const causeIsOfSignal = signal?.aborted === true && error.cause === signal.reason;
  return { id, name, message, reason, rank, causeIsOfSignal };
}
