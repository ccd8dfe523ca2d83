import { type Link, loopback } from "@terse/collectives";
import { type CodecCost, type LinkCost, type Measured, measureLink } from "@terse/exchange";

/** The link as the command line gives it, and this machine's codecs as measured. */
export async function measuredOf({ bitsPerSecond, latency: alpha }: Link): Promise<Measured> {
  const link: LinkCost = { alpha, alphaLong: alpha, perMessage: 0, perExchange: 0, beta: 8 / bitsPerSecond, burst: 0 };
  return { link, codec: await codecCost() };
}

let measuring: Promise<CodecCost> | undefined;

/** The codecs' speed on this machine, measured once in a process. */
function codecCost(): Promise<CodecCost> {
  measuring ??= (async () => {
    const [alone] = loopback(1);
    const { codec } = await measureLink(alone!);
    await alone!.close();
    return codec;
  })();
  return measuring;
}
