/** Data that `./terse data prepare NAME` fetches: where it is published, and its published checksum. */

/** A file to fetch. */
export interface Source {
  readonly url: string;
  readonly file: string; // where the fetched file is put, below the folder of the data
  /** Absent where none is published: the file is then one of tokens, whose header must fit its size. */
  readonly checksum?: readonly [algorithm: "md5" | "sha256", digits: string];
  /** The folder that the archive contains; absent where the file is no archive. */
  readonly folder?: string;
}

/** A published dataset: its files, and the options of a recipe that read it. */
export interface PublishedData {
  readonly files: readonly Source[];
  /** The folder of the files, where there are several. */
  readonly folder?: string;
  /** The options with which a recipe reads it. */
  readonly options: string;
  /** Whether `files` has a number of shards to choose from, behind the first file, which is held out. */
  readonly inShards?: boolean;
  /** Whether it is text, which can be tokenized. */
  readonly isText?: boolean;
}

/** The binary version, of which https://www.cs.toronto.edu/~kriz/cifar.html lists the MD5 sums. */
const cifar = (name: "cifar10" | "cifar100", archive: string, folder: string, md5: string): PublishedData => ({
  files: [{ url: `https://www.cs.toronto.edu/~kriz/${archive}`, file: archive, checksum: ["md5", md5], folder }],
  options: `--data.name=${name}`,
});

/**
 * A task of GLUE. The sums are those that Hugging Face's `datasets` or Julia's Transformers.jl have for these files.
 */
const glue = (archive: string, folder: string, sha256: string, options = ""): PublishedData => ({
  files: [
    {
      url: `https://dl.fbaipublicfiles.com/glue/data/${archive}`,
      file: archive,
      checksum: ["sha256", sha256],
      folder,
    },
  ],
  options: `--model.name=bert-classifier --data.name=labelled-text${options}`,
});

/** The sums of two shards, which several projects give; those of the others are not known. */
const finewebSums: Readonly<Record<string, string>> = {
  "fineweb_val_000000.bin": "5b95c8e0966f0861685b307b23dc5ae42b228ef74b28cb499784ae021f201640",
  "fineweb_train_000001.bin": "771fa4a99b9fe0946ffb6e848b4ba5c6a9b0fe87860ebf03bc2c1c7e45f8178e",
};
const finewebFolder = "fineweb10B";

function finewebShard(name: string): Source {
  const sum = finewebSums[name];
  return {
    url: `https://huggingface.co/datasets/kjj0/fineweb10B-gpt2/resolve/main/${name}`,
    file: `${finewebFolder}/${name}`,
    ...(sum !== undefined && { checksum: ["sha256", sum] as const }),
  };
}

/** The datasets that `./terse data prepare` fetches, by name. */
export const sources = {
  cifar10: cifar("cifar10", "cifar-10-binary.tar.gz", "cifar-10-batches-bin", "c32a1d4ab5d03f1284b67883e8d87530"),
  cifar100: cifar("cifar100", "cifar-100-binary.tar.gz", "cifar-100-binary", "03b5dce01913d631647c71ecec9e9cb8"),
  tinyshakespeare: {
    files: [
      {
        url: "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/input.txt",
        file: "tinyshakespeare.txt",
        checksum: ["sha256", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"],
      },
    ],
    options: "--data.name=text",
    isText: true,
  },
  // FineWeb's sample of 10 billion tokens by GPT-2's tokenizer, as modded-nanogpt reads it: 100 million tokens a shard.
  fineweb: {
    files: [
      finewebShard("fineweb_val_000000.bin"),
      ...Array.from({ length: 103 }, (_, i) => finewebShard(`fineweb_train_${String(i + 1).padStart(6, "0")}.bin`)),
    ],
    folder: finewebFolder,
    options: "--model.name=gpt2 --data.name=tokens",
    inShards: true,
  },
  sst2: glue("SST-2.zip", "SST-2", "d67e16fb55739c1b32cdce9877596db1c127dc322d93c082281f64057c16deaa"),
  cola: glue(
    "CoLA.zip",
    "CoLA",
    "f212fcd832b8f7b435fb991f101abf89f96b933ab400603bf198960dfc32cbff",
    ` --data.header=false --data.label='"2"' --data.sentence='"4"'`,
  ),
  qnli: glue(
    "QNLIv2.zip",
    "QNLI",
    "e634e78627a29adaecd4f955359b22bf5e70f2cbd93b493f2d624138a0c0e5f5",
    " --data.sentence=question --data.second=sentence --data.labels='[entailment, not_entailment]'",
  ),
} as const satisfies Record<string, PublishedData>;

/** The name of a dataset that `./terse data prepare` fetches. */
export type SourceName = keyof typeof sources;
