import { NetlabError, netlab, readLaboratory } from "./netlab.ts";

try {
  process.exitCode = await netlab(readLaboratory(process.argv.slice(2)));
} catch (error) {
  if (!(error instanceof NetlabError)) throw error;
  process.stderr.write(`error: netlab: ${error.message}\n`);
  process.exitCode = 1;
}
