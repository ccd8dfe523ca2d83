import { help, NetlabError, netlab, readLaboratory } from "./netlab.ts";

const argv = process.argv.slice(2);
try {
  if (argv[0] === "--help" || argv[0] === "-h") process.stdout.write(help);
  else process.exitCode = await netlab(readLaboratory(argv));
} catch (error) {
  if (!(error instanceof NetlabError)) throw error;
  process.stderr.write(`error: netlab: ${error.message}\n`);
  process.exitCode = 1;
}
