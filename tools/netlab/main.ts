import { OptionsError } from "../../packages/options/src/options-error.ts";
import { ignoreHangup } from "../bundled/ignore-hangup.ts";
import { help, NetlabError, netlab, readLaboratory } from "./netlab.ts";

ignoreHangup();
try {
  const laboratory = readLaboratory(process.argv.slice(2));
  if (laboratory === "help") process.stdout.write(help);
  else process.exitCode = await netlab(laboratory);
} catch (error) {
  if (!(error instanceof NetlabError || error instanceof OptionsError)) throw error;
  process.stderr.write(`error: netlab: ${error.message}\n`);
  process.exitCode = 1;
}
