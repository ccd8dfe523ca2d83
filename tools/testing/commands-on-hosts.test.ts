/** The commands of the documents that train on hosts, which only root can make, and those before them. */
import { describe } from "vitest";
import { netlabObstacle } from "../netlab/netlab.ts";
import { documents, testCommandsOf, wayOf } from "./documents-as-run.ts";

const isOnHosts = (text: string) => text.startsWith("./terse netlab ") && wayOf(text)?.never === undefined;
const obstacle = netlabObstacle();

describe.skipIf(obstacle)(`the commands of the documents on hosts${obstacle ? ` (skipped: ${obstacle})` : ""}`, () => {
  testCommandsOf(
    documents.flatMap(({ file, lines }) => {
      const last = lines.findLastIndex(({ text }) => isOnHosts(text));
      return last < 0 ? [] : [{ file, lines: lines.slice(0, last + 1) }];
    }),
    true,
  );
});
