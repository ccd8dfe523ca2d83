/** Data that `./terse data prepare NAME` fetches: where it is published, and its published checksum. */

export interface Source {
  readonly url: string;
  readonly file: string; // the name of the fetched file
  readonly checksum: readonly [algorithm: "md5" | "sha256", digits: string];
  /** The folder that the archive contains; absent where the file is no archive. */
  readonly folder?: string;
}

export const sources = {
  // https://www.cs.toronto.edu/~kriz/cifar.html lists the MD5 sums.
  cifar10: {
    url: "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    file: "cifar-10-binary.tar.gz",
    checksum: ["md5", "c32a1d4ab5d03f1284b67883e8d87530"],
    folder: "cifar-10-batches-bin",
  },
  cifar100: {
    url: "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
    file: "cifar-100-binary.tar.gz",
    checksum: ["md5", "03b5dce01913d631647c71ecec9e9cb8"],
    folder: "cifar-100-binary",
  },
  tinyshakespeare: {
    url: "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
    file: "tinyshakespeare.txt",
    checksum: ["sha256", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"],
  },
} as const satisfies Record<string, Source>;

export type SourceName = keyof typeof sources;
