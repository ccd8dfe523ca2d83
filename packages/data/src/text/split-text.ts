/**
 * The stretches of a text to train on, and those held out: [begin, end) of each.
 *
 * The text is cut into up to 64 equal stretches, and the end of each is held out. The end of the whole text alone would
 * often be files of a single package or author, and its loss would say little about the rest. The ends of many
 * stretches represent all of the text. A held-out piece has at least 16 KiB, so a short text has only one: its end.
 */
export type Stretch = readonly [begin: number, end: number];

const maxPieces = 64;
const minPieceBytes = 16 << 10;

export function splitText(length: number, fraction: number): { training: Stretch[]; validation: Stretch[] } {
  const heldOut = Math.floor(length * fraction);
  const pieces = Math.max(1, Math.min(maxPieces, Math.floor(heldOut / minPieceBytes)));
  const edge = (total: number, i: number) => Math.floor((total * i) / pieces);
  const [training, validation]: [Stretch[], Stretch[]] = [[], []];
  for (let i = 0; i < pieces; i++) {
    const end = edge(length, i + 1);
    const cut = end - (edge(heldOut, i + 1) - edge(heldOut, i));
    training.push([edge(length, i), cut]);
    validation.push([cut, end]);
  }
  return { training, validation };
}
