"""Rows of a file as TRL's SFTTrainer prepares them, for src/chat/as-in-trl.test.ts, which runs it with `folder`."""

import json
import os
import types

import datasets
import transformers
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from trl import pack_dataset
from trl.trainer.sft_trainer import DataCollatorForLanguageModeling, SFTTrainer

datasets.disable_progress_bars()
datasets.fingerprint.Hasher.hash = classmethod(
    lambda _, value: os.urandom(8).hex()
)  # it pickles all that a function sees
asked = json.loads(open(os.path.join(folder, "asked.json")).read())
special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>"]
t = Tokenizer(models.BPE())
t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
t.train_from_iterator(
    asked["words"],
    trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    ),
)
t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
tokenizer = transformers.PreTrainedTokenizerFast(
    tokenizer_object=t, bos_token="<s>", eos_token="</s>", pad_token="<unk>"
)
tokenizer.chat_template = asked["template"]
tokenizer.save_pretrained(os.path.join(folder, "tokenizer"))


def prepared(name, template, assistant_only, packing=None):
    rows = [json.loads(line) for line in open(os.path.join(folder, f"{name}.jsonl"))]
    trainer = types.SimpleNamespace(
        _tokenizer=tokenizer, chat_template=template, completion_only_loss="completion" in rows[0]
    )
    args = types.SimpleNamespace(
        dataset_num_proc=None,
        dataset_text_field="text",
        assistant_only_loss=assistant_only,
        max_length=asked["most"],
        truncation_mode="keep_start",
        shuffle_dataset=False,
        packing_strategy=packing,
        seed=0,
    )
    data = SFTTrainer._prepare_dataset(
        trainer, datasets.Dataset.from_list(rows), tokenizer, args, packing is not None, None, "train"
    )
    collate = DataCollatorForLanguageModeling(pad_token_id=tokenizer.pad_token_id, padding_free=packing == "bfd")
    batches = [
        {key: each.tolist() for key, each in collate([row]).items() if key in ("input_ids", "labels", "position_ids")}
        for row in data
    ]
    return batches


found = {
    "messages": prepared("messages", asked["template"], True),
    "prompts": prepared("prompts", asked["template"], False),
    "texts": prepared("texts", asked["template"], False),
    "sharegpt": prepared("sharegpt", asked["template"], True),
    "packed": prepared("messages", asked["template"], True, "bfd"),
    "wrapped": prepared("messages", asked["template"], True, "wrapped"),
}
json.dump(found, open(os.path.join(folder, "found.json"), "w"))
