/**
 * Cutout, DeVries and Taylor 2017, https://arxiv.org/abs/1708.04552, §3: a square of the normalised picture becomes 0,
 * which is its mean.
 */

/** A rectangle of pixels, [top, bottom) × [left, right). */
export interface Box {
  readonly top: number;
  readonly bottom: number;
  readonly left: number;
  readonly right: number;
}

/** The part of a box of `height` × `width` about (y, x) that is inside a picture of H × W. */
export function boxAbout(y: number, x: number, height: number, width: number, H: number, W: number): Box {
  const [top, left] = [y - Math.floor(height / 2), x - Math.floor(width / 2)];
  return {
    top: Math.max(0, top),
    bottom: Math.min(H, top + height),
    left: Math.max(0, left),
    right: Math.min(W, left + width),
  };
}

/** Sets `box` to 0 in (3, H, W). */
export function cutout(image: Float32Array, H: number, W: number, { top, bottom, left, right }: Box): void {
  for (let channel = 0; channel < 3; channel++)
    for (let y = top; y < bottom; y++) {
      const row = (channel * H + y) * W;
      image.fill(0, row + left, row + right);
    }
}
