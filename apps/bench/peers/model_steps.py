"""PyTorch, for comparison: training steps of one model with its fused AdamW, eager and compiled.

The models are those of packages/models/src/gpt/gpt.py, torchvision, timm and transformers, and PEFT's on the last. Reads lines and answers with
JSON: "eager N" and "compiled N" with the seconds of N training steps and the last loss. The first "compiled" compiles
the model, which takes a minute.
Arguments: MODEL OPTIONS(json: what MODEL's constructor here takes, and rows) THREADS [DEVICE [PRECISION: f32, or bf16
by autocast]].
"""

import json
import pathlib
import sys
import time

import torch
from torch import nn
from torch.nn import functional as F


def gpt(rows, **shape):
    sys.path.insert(0, str(pathlib.Path(__file__).parents[3] / "packages/models/src/gpt"))
    from gpt import Gpt

    model = Gpt(**shape)

    def batch():
        tokens = torch.randint(0, shape["vocabulary"], (rows, shape["context"] + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    return model, model.loss, batch


# transformers' own loss copies the logits to cut off the last one; this one, like ours, has a token after each.
def loss_of_text(model, tokens, following):
    logits = model(input_ids=tokens, use_cache=False).logits
    return F.cross_entropy(logits.flatten(0, 1), following.flatten())


def llama(rows, config):
    import transformers

    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**config))
    vocabulary, context = config["vocab_size"], config["max_position_embeddings"]

    def batch():
        tokens = torch.randint(0, vocabulary, (rows, context + 1))
        return tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()

    return model, lambda *text: loss_of_text(model, *text), batch


def lora(folder, rows, tokens, following, rank, alpha, targets):
    import peft
    import transformers

    base = transformers.AutoModelForCausalLM.from_pretrained(folder)
    model = peft.get_peft_model(
        base, peft.LoraConfig(r=rank, lora_alpha=alpha, target_modules=targets, task_type="CAUSAL_LM")
    )
    text = [torch.tensor(each).view(rows, -1) for each in (tokens, following)]
    return model, lambda *text: loss_of_text(model, *text), lambda: text


def images(model, rows, size, classes):
    loss = lambda images, labels: F.cross_entropy(model(images), labels)
    return model, loss, lambda: (torch.randn(rows, 3, size, size), torch.randint(0, classes, (rows,)))


def resnet18(rows, size, classes):
    from torchvision.models import resnet18

    model = resnet18(num_classes=classes)
    model.conv1, model.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()  # the form for CIFAR
    return images(model, rows, size, classes)


def vit(rows, name, size, classes):
    import timm

    return images(timm.create_model(name, img_size=size, num_classes=classes), rows, size, classes)


def bert(rows, vocabulary, context, width, heads, layers, hidden):
    import transformers

    model = transformers.MegatronBertForPreTraining(transformers.MegatronBertConfig(
        vocab_size=vocabulary, max_position_embeddings=context, hidden_size=width, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=hidden, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0))  # fmt: skip

    # transformers' own loss computes the scores of all words at every position; this one, like ours, only where a word
    # was masked.
    def loss(tokens, segments, mask, labels, next_sentence):
        x, pooled = model.bert(input_ids=tokens, token_type_ids=segments, attention_mask=mask)[:2]
        predicted = labels != -100
        scores, next_scores = model.cls(x[predicted], pooled)
        return F.cross_entropy(scores, labels[predicted]) + F.cross_entropy(next_scores, next_sentence)

    def batch():
        tokens = torch.randint(0, vocabulary, (rows, context))
        labels = torch.where(torch.rand(rows, context) < 0.15, tokens, -100)
        return (
            tokens,
            (torch.arange(context) >= context // 2).long().expand(rows, -1).contiguous(),
            torch.ones_like(tokens),
            labels,
            torch.randint(0, 2, (rows,)),
        )

    return model, loss, batch


torch.set_num_threads(int(sys.argv[3]))
torch.manual_seed(0)
device, precision = torch.device((sys.argv[4:] or ["cpu"])[0]), (sys.argv[5:] or ["f32"])[0]
with device:
    model, loss_of, batch = {"gpt": gpt, "llama": llama, "lora": lora, "resnet18": resnet18, "vit": vit, "bert": bert}[
        sys.argv[1]
    ](**json.loads(sys.argv[2]))
model.train()
optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-4, fused=True)
sides = {"eager": loss_of, "compiled": torch.compile(loss_of)}


def step(loss_of):
    optimizer.zero_grad(set_to_none=True)
    with device:
        inputs = batch()
    with torch.autocast(device.type, torch.bfloat16, enabled=precision == "bf16"):
        loss = loss_of(*inputs)
    loss.backward()
    optimizer.step()
    return loss.item()


name = torch.cuda.get_device_name(device) if device.type == "cuda" else "cpu"
parameters = sum(p.numel() for p in model.parameters())
print(json.dumps({"torch": torch.__version__, "parameters": parameters}), flush=True)
for line in sys.stdin:
    word, count = line.split()
    begin = time.perf_counter()
    for _ in range(int(count)):
        loss = step(sides[word])
    print(
        json.dumps({"seconds": time.perf_counter() - begin, "loss": loss, "parameters": parameters, "device": name}),
        flush=True,
    )
