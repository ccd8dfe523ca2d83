import { expect, it } from "vitest";
import { inWords } from "./index.ts";

it.each([
  [{ code: "ERR_WORKER_INIT_FAILED", message: "Worker initialization failure: EMFILE" }, /^a thread .* \(ulimit -n\)$/],
  [{ code: "EMFILE", syscall: "spawn /usr/bin/node", message: "spawn /usr/bin/node EMFILE" }, /^a process .*-n\)$/],
  [
    { code: "EAGAIN", syscall: "spawn node", path: "node", message: "spawn node EAGAIN" },
    /^a process .*\(ulimit -u, or the container/,
  ],
  [
    { code: "EMFILE", syscall: "open", path: "/a", message: "EMFILE: open '/a'" },
    /^Cannot open \/a: .*\(ulimit -n\)\.$/,
  ],
  [{ code: "ENOENT", syscall: "spawn sh", path: "sh", message: "spawn sh ENOENT" }, /^spawn sh ENOENT$/],
])("says what is short: %j", (fields, words) => {
  expect((inWords(Object.assign(new Error(fields.message), fields)) as Error).message).toMatch(words);
});
