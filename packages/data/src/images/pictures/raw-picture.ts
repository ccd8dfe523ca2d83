/** The pixels of a picture, (H, W, 3) u8. */
export interface RawPicture {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array;
}
