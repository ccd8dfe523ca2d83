/** Names in the files of transformers' ResNet. Here they are torchvision's. */
export function storedAs(parameter: string): readonly string[] {
  const [, module, kind] = /^(.+)\.(\w+)$/.exec(parameter)!;
  const block = /^layer(\d)\.(\d+)\.(.+)$/.exec(module!);
  if (!block) return [`${outside[module!]}.${kind}`];
  const [, stage, index, layer] = block;
  return [`resnet.encoder.stages.${Number(stage) - 1}.layers.${index}.${inBlock[layer!]}.${kind}`];
}

const outside: Readonly<Record<string, string>> = {
  conv1: "resnet.embedder.embedder.convolution",
  bn1: "resnet.embedder.embedder.normalization",
  fc: "classifier.1",
};

const inBlock: Readonly<Record<string, string>> = {
  conv1: "layer.0.convolution",
  bn1: "layer.0.normalization",
  conv2: "layer.1.convolution",
  bn2: "layer.1.normalization",
  conv3: "layer.2.convolution",
  bn3: "layer.2.normalization",
  "downsample.0": "shortcut.convolution",
  "downsample.1": "shortcut.normalization",
};
