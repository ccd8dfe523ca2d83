"""Tokenizers for src/tokenizers/as-in-python.test.ts, with their ids: one of each part that a tokenizer.json may have,
and the forms of many models. The test runs it with `folder`, in which texts.json is."""

import base64
import json
import os
import struct

from tokenizers import AddedToken, Regex, Tokenizer, models, processors, trainers
from tokenizers import decoders as D
from tokenizers import normalizers as N
from tokenizers import pre_tokenizers as P

texts = json.loads(open(os.path.join(folder, "texts.json")).read())
corpus = [t for t in texts for _ in range(3)] + ["numbers of words in texts, and spaces between words " * 3]
special = ["<unk>", "<s>", "</s>", "[MASK]"]
tokenizers = {}


def bpe(name, pre=None, norm=None, dec=None, added=(), model={}, size=500, **trainer):
    t = Tokenizer(models.BPE(**{"unk_token": "<unk>", **model}))
    if pre:
        t.pre_tokenizer = pre
    if norm:
        t.normalizer = norm
    if dec:
        t.decoder = dec
    t.train_from_iterator(
        corpus, trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False, **trainer)
    )
    if added:
        t.add_tokens(list(added))
    tokenizers[name] = t
    return t


def charsmap():
    """SentencePiece's normalization as data: a double array of the keys "\\n" and "①", then " " and "1" for them."""
    units = [0] * 1024
    units[0] = 1 << 10  # a child of a unit is at: its place ^ its offset ^ the byte
    units[0x0B] = 0x0A | 1 << 8 | 1 << 10  # label, has a leaf, offset
    units[0x0A] = 1 << 31 | 0  # the leaf: where the replacement begins
    units[0xE3], units[0x172], units[0x3D2], units[0x3D3] = (
        0xE2 | 0x100 << 10,
        0x91 | 0x200 << 10,
        0xA0 | 1 << 8 | 1 << 10,
        1 << 31 | 2,
    )
    trie = struct.pack("<1024I", *units)
    return struct.pack("<I", len(trie)) + trie + b" \0" + b"1\0"


for name, norm in {
    "BertNormalizer": N.BertNormalizer(),
    "BertNormalizer cased": N.BertNormalizer(lowercase=False, strip_accents=True),
    "BertNormalizer plain": N.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=False),
    "ByteLevel": N.ByteLevel(),
    "Lowercase": N.Lowercase(),
    "NFC": N.NFC(),
    "NFD": N.NFD(),
    "NFKC": N.NFKC(),
    "NFKD": N.NFKD(),
    "Nmt": N.Nmt(),
    "Precompiled": N.Precompiled(charsmap()),
    "Prepend": N.Prepend("▁"),
    "Replace string": N.Replace(" ", "▁"),
    "Replace regex": N.Replace(Regex(r"[\p{N}\s]+"), "_"),
    "Replace lookahead": N.Replace(Regex(r"o(?=u)|(?<=t)e"), "0"),
    "Strip": N.Strip(),
    "Strip left": N.Strip(left=True, right=False),
    "StripAccents": N.Sequence([N.NFD(), N.StripAccents()]),
    "Sequence": N.Sequence(
        [N.Replace("‘‘", '"'), N.NFKD(), N.StripAccents(), N.Lowercase(), N.Replace(Regex(" {2,}"), " ")]
    ),
}.items():
    bpe("normalizer " + name, norm=norm, pre=P.WhitespaceSplit())

for name, pre in {
    "BertPreTokenizer": P.BertPreTokenizer(),
    "ByteLevel": P.ByteLevel(),
    "ByteLevel no prefix": P.ByteLevel(add_prefix_space=False),
    "ByteLevel no regex": P.ByteLevel(use_regex=False),
    "CharDelimiterSplit": P.CharDelimiterSplit("o"),
    "Digits": P.Digits(),
    "Digits each": P.Digits(individual_digits=True),
    "Metaspace": P.Metaspace(),
    "Metaspace first": P.Metaspace(prepend_scheme="first"),
    "Metaspace never": P.Metaspace(prepend_scheme="never"),
    "Metaspace whole": P.Metaspace(split=False),
    "Metaspace other": P.Metaspace(replacement="_"),
    **{
        f"Punctuation {b}": P.Punctuation(b)
        for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    },
    **{
        f"Split string {b}": P.Split(" ", b)
        for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
    },
    **{
        f"Split regex {b} {i}": P.Split(Regex(r"\p{L}+|\s"), b, invert=i)
        for b in ("removed", "isolated", "merged_with_previous", "merged_with_next", "contiguous")
        for i in (False, True)
    },
    "Split possessive": P.Split(Regex(r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+|\s++$|\s+"), "isolated"),
    "UnicodeScripts": P.UnicodeScripts(),
    "Whitespace": P.Whitespace(),
    "WhitespaceSplit": P.WhitespaceSplit(),
    **({"FixedLength": P.FixedLength(length=5)} if hasattr(P, "FixedLength") else {}),
    "Sequence": P.Sequence([P.WhitespaceSplit(), P.Punctuation(), P.Digits(individual_digits=True)]),
}.items():
    bpe("pre_tokenizer " + name, pre=pre)

for name, dec in {
    "BPEDecoder": D.BPEDecoder(suffix="</w>"),
    "ByteFallback": D.ByteFallback(),
    "ByteLevel": D.ByteLevel(),
    "CTC": D.CTC(pad_token="<s>", word_delimiter_token="▁"),
    "Fuse": D.Fuse(),
    "Metaspace": D.Metaspace(),
    "Metaspace never": D.Metaspace(prepend_scheme="never"),
    "Replace": D.Replace("▁", " "),
    "Replace regex": D.Replace(Regex("▁+"), " "),
    "Strip": D.Sequence([D.Replace("▁", " "), D.Fuse(), D.Strip(" ", 1, 1)]),
    "WordPiece": D.WordPiece(prefix="▁"),
    "WordPiece as is": D.WordPiece(prefix="▁", cleanup=False),
    "Sequence": D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)]),
}.items():
    bpe("decoder " + name, pre=P.Metaspace(), dec=dec)

few = {"size": 300, "limit_alphabet": 40}  # letters are unknown
for fuse in (False, True):
    bpe(f"BPE fuse_unk {fuse}", pre=P.Whitespace(), model={"fuse_unk": fuse}, **few)
bpe("BPE without unk", pre=P.Whitespace(), model={"unk_token": None}, **few)
bpe(
    "BPE continuing prefix",
    pre=P.Whitespace(),
    model={"continuing_subword_prefix": "##"},
    dec=D.WordPiece(),
    continuing_subword_prefix="##",
)
bpe(
    "BPE end of word",
    pre=P.Whitespace(),
    model={"end_of_word_suffix": "</w>"},
    dec=D.BPEDecoder(suffix="</w>"),
    end_of_word_suffix="</w>",
)
bytes_ = [f"<0x{b:02X}>" for b in range(256)]


def fallback(name, **more):
    t = bpe("x", norm=more.pop("norm", None), pre=more.pop("pre", None), dec=more.pop("dec", None), **few)
    state = json.loads(t.to_str())
    vocab = state["model"]["vocab"]
    for b in bytes_:
        vocab[b] = len(vocab)
    state["model"].update(byte_fallback=True, **more)
    del tokenizers["x"]
    tokenizers[name] = Tokenizer.from_str(json.dumps(state))


fallback("BPE byte_fallback", pre=P.Metaspace(), dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]))
for ignore in (False, True):
    t = bpe(f"BPE ignore_merges {ignore}", pre=P.WhitespaceSplit())
    state = json.loads(t.to_str())
    state["model"]["vocab"]["naïve"] = len(state["model"]["vocab"])
    state["model"]["ignore_merges"] = ignore
    tokenizers[f"BPE ignore_merges {ignore}"] = Tokenizer.from_str(json.dumps(state))

words = sorted({w for t in texts for w in t.split()})[::2]
t = Tokenizer(models.WordLevel({w: i for i, w in enumerate(["<unk>"] + words)}, unk_token="<unk>"))
t.pre_tokenizer = P.WhitespaceSplit()
tokenizers["WordLevel"] = t
for longest in (100, 6):
    t = Tokenizer(models.WordPiece(unk_token="<unk>", max_input_chars_per_word=longest))
    t.pre_tokenizer = P.BertPreTokenizer()
    t.decoder = D.WordPiece()
    t.train_from_iterator(
        corpus, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False)
    )
    state = json.loads(t.to_str())
    state["model"]["max_input_chars_per_word"] = longest
    tokenizers[f"WordPiece {longest}"] = Tokenizer.from_str(json.dumps(state))
for name, fallback_ in (("Unigram", False), ("Unigram byte_fallback", True)):
    t = Tokenizer(models.Unigram())
    t.pre_tokenizer = P.Metaspace()
    t.decoder = D.Metaspace()
    t.train_from_iterator(
        corpus[::2],
        trainers.UnigramTrainer(
            vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False, initial_alphabet=[]
        ),
    )
    state = json.loads(t.to_str())
    kept = [e for e in state["model"]["vocab"] if len(e[0].encode()) < 3 or ord(e[0][0]) < 256]
    if fallback_:
        kept += [[b, -20.0] for b in bytes_]
    state["model"].update(vocab=kept, byte_fallback=fallback_)
    state["added_tokens"] = []
    tokenizers[name] = Tokenizer.from_str(json.dumps(state))

for flags in [
    {},
    {"lstrip": True},
    {"rstrip": True},
    {"lstrip": True, "rstrip": True},
    {"single_word": True},
    {"normalized": True},
    {"normalized": False},
]:
    t = bpe(
        f"AddedToken {flags}",
        pre=P.ByteLevel(),
        norm=N.Lowercase(),
        dec=D.ByteLevel(),
        added=[AddedToken("[MASK]x", **flags), AddedToken("in", **flags), AddedToken("NUMBERS", **flags)],
    )
    t.add_special_tokens([AddedToken("[MASK]", **flags), AddedToken("<|endoftext|>", **flags)])

for name, post in {
    "BertProcessing": processors.BertProcessing(("</s>", 2), ("<s>", 1)),
    "RobertaProcessing": processors.RobertaProcessing(("</s>", 2), ("<s>", 1)),
    "ByteLevel": processors.ByteLevel(),
    "TemplateProcessing": processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> $B:1 </s>:1", special_tokens=[("<s>", 1), ("</s>", 2)]
    ),
    "Sequence": processors.Sequence(
        [processors.ByteLevel(), processors.TemplateProcessing(single="<s> $A", special_tokens=[("<s>", 1)])]
    ),
}.items():
    bpe("post_processor " + name, pre=P.ByteLevel(), dec=D.ByteLevel()).post_processor = post
t = bpe("truncation and padding", pre=P.ByteLevel(), dec=D.ByteLevel())
state = json.loads(t.to_str())
cut = Tokenizer.from_str(t.to_str())
cut.enable_truncation(3)
cut.enable_padding(length=7)
state.update({k: json.loads(cut.to_str())[k] for k in ("truncation", "padding")})
written = {"truncation and padding": json.dumps(state)}

# The forms of tokenizers that many models have, by the parts of their published files.
gpt4 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
qwen = gpt4.replace(r"\p{N}{1,3}", r"\p{N}")
alphabet = {"initial_alphabet": P.ByteLevel.alphabet()}
level = P.ByteLevel(add_prefix_space=False)
bpe("GPT-2", pre=level, dec=D.ByteLevel(), **alphabet)
bpe("RoBERTa", pre=P.ByteLevel(add_prefix_space=True), dec=D.ByteLevel(), **alphabet)
split = lambda pattern: P.Sequence(
    [P.Split(Regex(pattern), "isolated"), P.ByteLevel(add_prefix_space=False, use_regex=False)]
)
bpe("Llama 3", pre=split(gpt4), dec=D.ByteLevel(), **alphabet)
bpe("Qwen", norm=N.NFC(), pre=split(qwen), dec=D.ByteLevel(), **alphabet)
bpe(
    "ModernBERT",
    norm=N.NFC(),
    pre=level,
    dec=D.ByteLevel(),
    added=[AddedToken("  ", normalized=True), AddedToken("   ", normalized=True)],
    **alphabet,
)
bpe(
    "DeepSeek",
    pre=P.Sequence(
        [
            P.Split(Regex(r"\p{N}{1,3}"), "isolated"),
            P.Split(Regex("[一-龥぀-ゟ゠-ヿ]+"), "isolated"),
            P.Split(
                Regex(
                    r"[!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
                ),
                "isolated",
            ),
            P.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    ),
    dec=D.ByteLevel(),
    **alphabet,
)
pieces = D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse(), D.Strip(" ", 1, 0)])
fallback("Llama 2", norm=N.Sequence([N.Prepend("▁"), N.Replace(" ", "▁")]), dec=pieces, fuse_unk=True)
fallback("Mistral", pre=P.Metaspace(prepend_scheme="first", split=False), dec=pieces, fuse_unk=True)
fallback(
    "Gemma",
    norm=N.Replace(" ", "▁"),
    pre=P.Split(" ", "merged_with_previous"),
    dec=D.Sequence([D.Replace("▁", " "), D.ByteFallback(), D.Fuse()]),
    fuse_unk=True,
)
t = Tokenizer(models.WordPiece(unk_token="<unk>"))
t.normalizer, t.pre_tokenizer, t.decoder = N.BertNormalizer(), P.BertPreTokenizer(), D.WordPiece()
t.train_from_iterator(corpus, trainers.WordPieceTrainer(vocab_size=400, special_tokens=special, show_progress=False))
tokenizers["BERT"] = t
t = Tokenizer(models.Unigram())
t.pre_tokenizer, t.decoder = P.Sequence([P.WhitespaceSplit(), P.Metaspace()]), D.Metaspace()
t.normalizer = N.Sequence([N.NFKC(), N.Replace(Regex(" {2,}"), " ")])
t.train_from_iterator(
    corpus, trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>", show_progress=False)
)
tokenizers["T5"] = t
bpe(
    "CLIP",
    norm=N.Sequence([N.NFC(), N.Replace(Regex(r"\s+"), " "), N.Lowercase()]),
    pre=P.Sequence(
        [
            P.Split(
                Regex(r"<\|startoftext\|>|<\|endoftext\|>|'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"),
                "removed",
                invert=True,
            ),
            P.ByteLevel(add_prefix_space=False),
        ]
    ),
    dec=D.ByteLevel(),
    model={"end_of_word_suffix": "</w>"},
    end_of_word_suffix="</w>",
    **alphabet,
)


def asked(question):
    try:
        return question()
    except BaseException as error:  # a PanicException is no Exception
        assert "Panic" in type(error).__name__, error
        return None  # the library gives up


found = {}
for name, t in tokenizers.items():
    file = f"{len(found)}.json"
    open(os.path.join(folder, file), "w").write(written.get(name) or t.to_str())
    ids = [asked(lambda: t.encode(text, add_special_tokens=False).ids) for text in texts]
    decoded = [asked(lambda: t.decode(each)) if each is not None else None for each in ids]
    found[name] = {"file": file, "ids": ids, "texts": decoded, "size": max(t.get_vocab().values()) + 1}
json.dump(found, open(os.path.join(folder, "found.json"), "w"))
