/** The norms that are known, by a bucket's place. */
export interface BucketNorms {
  own(place: number): number;
  mean(place: number): number;
  wholeOwn(): number; // of all own gradients, as they are now
  wholeMean(): number;
}

/** One way to clip. It gives N for a bucket, by the bucket's place in the order in which buckets leave. */
export interface ClippingWay {
  /** Own gradients must all be there before the first bucket leaves. */
  readonly ownNeedsAll: boolean;
  /** The norm that clips the own gradients of bucket `place`; the buckets before it have left. */
  ownNorm(place: number, norms: BucketNorms): number;
  /** The norm that clips its mean gradients; with `meansNeedAll` those of all buckets have come. */
  meanNorm(place: number, norms: BucketNorms): number;
}
