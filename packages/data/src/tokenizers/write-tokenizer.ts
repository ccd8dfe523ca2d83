/** The command by which transformers writes the tokenizer.json of a folder, as a shell takes it. */
export function writeTokenizerCommand(folder: string): string {
  const text = JSON.stringify(folder).replaceAll("'", "\\u0027"); // a quote would end the shell's word
  return `python -c 'from transformers import AutoTokenizer as T; f = ${text}; T.from_pretrained(f).save_pretrained(f)'`;
}
