/** The datasets of numbered samples, by the name that recipes use. */
import { chatEntry } from "./chat/chat-entry.ts";
import type { SampledEntry } from "./dataset.ts";
import { imageEntries } from "./images/image-entries.ts";
import { labelledTextEntry } from "./labelled-text/labelled-text-entry.ts";
import { maskedTextEntry } from "./masked-text/masked-text-entry.ts";
import { textEntry } from "./text/text-entry.ts";
import { tokensEntry } from "./tokens/tokens-entry.ts";

export const sampledEntries = {
  text: textEntry,
  tokens: tokensEntry,
  chat: chatEntry,
  "masked-text": maskedTextEntry,
  "labelled-text": labelledTextEntry,
  ...imageEntries,
} satisfies Record<string, SampledEntry>;
