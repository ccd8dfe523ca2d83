export const toHex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");
export const fromHex = (text: string): Uint8Array => Uint8Array.from(Buffer.from(text, "hex"));
