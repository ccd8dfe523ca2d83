/**
 * The program of a process that renders chat templates. Others wrote them: one that runs for ever, or fills the memory,
 * ends this process and not the run.
 */
import { shortened } from "../data-error.ts";
import { NotKnown } from "./jinja/not-known.ts";
import { compileChat, type Message, type Render, type Rendering, type RenderOptions } from "./render-chat.ts";

/** The template comes first. Each of the others is answered, one after the other. */
export type RenderMessage = (RenderOptions & { readonly template: string }) | RenderRequest;

export interface RenderRequest {
  readonly messages: readonly Message[];
  readonly tools?: unknown;
  readonly variables?: Readonly<Record<string, unknown>> | undefined;
  readonly beginnings: readonly Beginning[];
}

/** The first messages alone; with `prompt`, followed by what asks for an answer. */
export interface Beginning {
  readonly count: number;
  readonly prompt: boolean;
}

/** One for each beginning. */
export type RenderAnswer =
  | { readonly rendered: readonly Rendering[] }
  | { readonly problem: string; readonly ofTemplate?: boolean }; // whatever the row

let render: () => Render;

const wordsOf = (error: unknown): string => shortened(error instanceof Error ? error.message : String(error));

/** The library reads on behind the end of a template that leaves a tag open. */
const invalid = (error: unknown): string =>
  `it is not valid, ${error instanceof TypeError ? "it ends before a tag that it has begun is closed" : wordsOf(error)}`;

const answerTo = ({ messages, tools, variables, beginnings }: RenderRequest): RenderAnswer => ({
  rendered: beginnings.map(({ count, prompt }) => render()(messages.slice(0, count), { prompt, tools, variables })),
});

process.on("message", (message: RenderMessage) => {
  if ("template" in message) {
    let compiled: Render | undefined;
    render = () => (compiled ??= compileChat(message.template, message));
    return;
  }
  let answer: RenderAnswer;
  try {
    render();
    try {
      answer = answerTo(message);
    } catch (error) {
      answer = { problem: wordsOf(error), ofTemplate: error instanceof NotKnown };
    }
  } catch (error) {
    answer = { problem: invalid(error), ofTemplate: true };
  }
  process.send!(answer);
});
// An interrupt ends the run, and the run ends this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => {});
process.on("disconnect", () => process.exit());
