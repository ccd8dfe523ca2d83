"""Chat templates for src/chat/as-in-transformers.test.ts, with the ids and masks of transformers' apply_chat_template.
The templates are our own writing of the forms that models have; those that transformers and, where it is installed, TRL
bring along are taken from there. The test runs it with `folder`, in which chats.json is."""

import ast
import glob
import importlib.util
import json
import os

import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

chats = json.loads(open(os.path.join(folder, "chats.json")).read())
words = [m["content"] for c in chats for m in c if isinstance(m["content"], str)] * 3
special = ["<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>", "<|eot|>", "[INST]", "[/INST]", "<start_of_turn>"]


def saved(name, tokenizer, **tokens):
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, **tokens)
    fast.save_pretrained(os.path.join(folder, name))
    return fast


def byte_level():
    t = Tokenizer(models.BPE())
    t.pre_tokenizer, t.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    t.train_from_iterator(
        words,
        trainers.BpeTrainer(vocab_size=400, special_tokens=special, initial_alphabet=alphabet, show_progress=False),
    )
    t.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 1)])
    return t


def pieces():
    t = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    t.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    t.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    t.train_from_iterator(
        words, trainers.BpeTrainer(vocab_size=300, special_tokens=special, limit_alphabet=60, show_progress=False)
    )
    return t


tokenizers = {
    "byte level": saved("bytes", byte_level(), bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<unk>"),
    "pieces": saved("pieces", pieces(), bos_token="<s>", eos_token="</s>"),
}

turn = "{% for m in messages %}"
templates = {
    "ChatML": turn
    + "{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "ChatML with a default system message": "{% if messages[0]['role'] != 'system' %}{{ '<|im_start|>system\\nHelp.<|im_end|>\\n' }}{% endif %}"
    + turn
    + "{%- if m.role == 'assistant' -%}<|im_start|>assistant\n{% generation %}{{ m.content }}<|im_end|>{% endgeneration %}\n{% else -%}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif -%}{% endfor %}",
    "Llama 2": """{% if messages[0]['role'] == 'system' %}
    {% set rest = messages[1:] %}{% set system = '<<SYS>>\\n' + messages[0]['content'].strip() + '\\n<</SYS>>\\n\\n' %}
{% else %}
    {% set rest = messages %}{% set system = false %}
{% endif %}
{% for m in rest %}
    {% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}
    {% set content = system + m['content'] if loop.first and system is not false else m['content'] %}
    {% if m['role'] == 'user' %}
        {{- bos_token + '[INST] ' + content | trim + ' [/INST]' }}
    {% else %}
        {{- ' ' + content | trim + ' ' }}{% generation %}{{ eos_token }}{% endgeneration %}
    {% endif %}
{% endfor %}""",
    "Llama 3": turn
    + "{% set block = '<|h|>' + m['role'] + '<|/h|>\\n\\n' + m['content'] | trim + '<|eot|>' %}{% if loop.index0 == 0 %}{% set block = bos_token + block %}{% endif %}{{ block }}{% endfor %}{% if add_generation_prompt %}{{ '<|h|>assistant<|/h|>\\n\\n' }}{% endif %}",
    "Llama 3, marked": "{{- bos_token }}"
    + turn
    + """
    {%- if m.role == 'assistant' %}
        {{- '<|h|>assistant<|/h|>\\n\\n' }}
        {%- generation %}
            {{- m.content | trim + '<|eot|>' }}
        {%- endgeneration %}
    {%- else %}
        {{- '<|h|>' ~ m.role ~ '<|/h|>\\n\\n' ~ m.content | trim ~ '<|eot|>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|h|>assistant<|/h|>\\n\\n' }}{%- endif %}""",
    "Mistral": """{%- if messages[0]["role"] == "system" %}{%- set system = messages[0]["content"] %}{%- set loop_messages = messages[1:] %}{%- else %}{%- set loop_messages = messages %}{%- endif %}
{{- bos_token }}
{%- for message in loop_messages %}
    {%- if message["role"] == "user" %}
        {%- if loop.last and system is defined %}{{- "[INST] " + system + "\\n\\n" + message["content"] + "[/INST]" }}{%- else %}{{- "[INST] " + message["content"] + "[/INST]" }}{%- endif %}
    {%- elif message["role"] == "assistant" %}{%- generation %}{{- " " + message["content"] | trim + eos_token }}{%- endgeneration %}
    {%- else %}{{- raise_exception("Only user, assistant and system are known, not " + message["role"]) }}{%- endif %}
{%- endfor %}""",
    "Zephyr": turn
    + "\n{% if m['role'] == 'user' %}\n{{ '<|user|>\n' + m['content'] + eos_token }}\n{% elif m['role'] == 'system' %}\n{{ '<|system|>\n' + m['content'] + eos_token }}\n{% elif m['role'] == 'assistant' %}\n{{ '<|assistant|>\n'  + m['content'] + eos_token }}\n{% endif %}\n{% if loop.last and add_generation_prompt %}\n{{ '<|assistant|>' }}\n{% endif %}\n{% endfor %}",
    "Gemma": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system message') }}{% endif %}"
    + turn
    + "{% if m['role'] == 'assistant' %}{% set role = 'model' %}{% else %}{% set role = m['role'] %}{% endif %}{{ '<start_of_turn>' + role + '\n' + m['content'] | trim + '<end_of_turn>\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}",
    "Phi": turn
    + "{% if m['role'] in ['system', 'user'] %}{{ '<|' ~ m['role'] ~ '|>\\n' + m['content'] + '<|end|>\\n' }}{% elif m['role'] == 'assistant' %}{{ '<|assistant|>\\n' }}{% generation %}{{ m['content'] + '<|end|>\\n' }}{% endgeneration %}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}",
    "Qwen with thoughts": """{%- set ns = namespace(asks=true, last=messages | length - 1) %}
{%- for m in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if ns.asks and m.role == "user" and m.content is string and not (m.content.startswith('<tool>') and m.content.endswith('</tool>')) %}{%- set ns.asks = false %}{%- set ns.last = index %}{%- endif %}
{%- endfor %}
{%- for m in messages %}
    {%- set content = m.content if m.content is string else '' %}
    {%- if m.role == "assistant" %}
        {%- set thought = m.reasoning_content if m.reasoning_content is string else '' %}
        {%- if not thought and '</think>' in content %}
            {%- set thought = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{%- set content = content.split('</think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or thought) %}{{- '<|im_start|>' + m.role + '\\n<think>\\n' + thought.strip('\\n') + '\\n</think>\\n\\n' + content.lstrip('\\n') }}{%- else %}{{- '<|im_start|>' + m.role + '\\n' + content }}{%- endif %}
        {%- for call in m.tool_calls or [] %}{{- '\\n<call>\\n{"name": "' ~ call.function.name ~ '", "arguments": ' ~ call.function.arguments | tojson ~ '}\\n</call>' }}{%- endfor %}
        {{- '<|im_end|>\\n' }}
    {%- else %}{{- '<|im_start|>' + m.role + '\\n' + content + '<|im_end|>' + '\\n' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n' }}{%- if enable_thinking is defined and enable_thinking is false %}{{- '<think>\\n\\n</think>\\n\\n' }}{%- endif %}{%- endif %}""",
    "DeepSeek": "{% if not add_generation_prompt is defined %}{% set add_generation_prompt = false %}{% endif %}{% set ns = namespace(system='', first=true) %}{% for m in messages %}{% if m['role'] == 'system' %}{% if ns.first %}{% set ns.system = ns.system + m['content'] %}{% set ns.first = false %}{% else %}{% set ns.system = ns.system + '\\n\\n' + m['content'] %}{% endif %}{% endif %}{% endfor %}{{ bos_token }}{{ ns.system }}"
    + turn
    + "{% if m['role'] == 'user' %}{{ '<|User|>' + m['content'] }}{% endif %}{% if m['role'] == 'assistant' and m['content'] %}{% set content = m['content'] %}{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}{{ '<|Assistant|>' + content + eos_token }}{% endif %}{% endfor %}{% if add_generation_prompt %}{{ '<|Assistant|>' }}{% endif %}",
    "Vicuna": "{{ 'A chat between a user and an assistant.\\n\\n' }}"
    + turn
    + "{% if m['role'] == 'user' %}{{ 'USER: ' + m['content'] | trim + ' ' }}{% elif m['role'] == 'assistant' %}{{ 'ASSISTANT:' }}{% generation %} {{ m['content'] | trim }}{{ eos_token }}{% endgeneration %}{% endif %}{% endfor %}",
    "Alpaca": turn
    + "\n### {{ {'user': 'Instruction', 'assistant': 'Response'}.get(m.role, m.role | capitalize | upper) }}:\n{{ m.content }}\n\n{% endfor %}{% if add_generation_prompt %}### Response:\n{% endif %}",
    "Command": "{{ bos_token }}"
    + turn
    + "{%- if loop.first and m.role == 'system' -%}<|T|>{{ m.content }}<|/T|>{%- continue -%}{%- endif -%}{{ '<|T|>' ~ m.role | upper ~ '|' ~ m.content | trim ~ '<|/T|>' }}{%- endfor -%}",
    "as far as a tool": turn
    + "{% if m.role == 'tool' %}{% break %}{% endif %}{{ loop.index }}/{{ loop.length }} {{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}",
    "OpenChat": "{{ bos_token }}"
    + turn
    + "{{ 'GPT4 Correct ' + m['role'].title() + ': ' + m['content'] + '<|end|>'}}{% endfor %}{% if add_generation_prompt %}{{ 'GPT4 Correct Assistant:' }}{% endif %}",
    "a macro": "{%- macro said(m, last=false) -%}{{ '[' ~ m.role ~ ']' }} {{ m.content | trim }}{%- if last %} (end){% endif -%}{%- endmacro -%}"
    + turn
    + "{{- said(m, loop.last) }}\n{% endfor -%}",
    "marks with stripped blanks": turn
    + "\n   {%- if m.role == 'assistant' -%}   A:   {%- generation -%}   {{ m.content }}   {%- endgeneration -%}   \n\n.{%- else -%} {{ m.role[0] }}: {{ m.content }}\n{% endif %}\n{% endfor %}\n",
    "what is set inside a mark stays there": "{% set x = 'outside' %}"
    + turn
    + "{% if m.role == 'assistant' %}{% generation %}{% set x = 'inside' %}{{ x }} {{ m.content }}{% endgeneration %} {{ x }}{% else %}{{ m.content }}{% endif %}{% endfor %}\n\n",
    "a comment {# #}": "{# says nothing #}\n  {#- nor this -#}\n"
    + turn
    + "{{ m.role }}={{ m.content | length }};{% endfor %}{{ tools is none }}{{ documents is none }}{{ nothing }}",
    "blanks before blocks": "  {% for m in messages %}\n    {{ m.role }}\n    {% if m.content %}\n  x {% endif %}\n\t{{ m.content }}\n  {% endfor %}\n",
}
templates["methods of texts"] = (
    turn
    + "{{ m.content.strip('\\n') }}|{{ m.content.rstrip('d ') }}|{{ m.content | trim }}|{{ m.role | capitalize }}|{{ m.content[0] }}{{ loop.index0 % -2 }}{{ '=' * 3 }};{% endfor %}"
)
templates["Llama 3, marked, with ends of lines of Windows"] = templates["Llama 3, marked"].replace("\n", "\r\n")
root = os.path.dirname(transformers.__file__)
for path in sorted(glob.glob(os.path.join(root, "models", "*", "processing_*.py"))):
    for node in ast.walk(ast.parse(source)) if "endfor" in (source := open(path).read()) else []:
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and "messages" in node.value
            and "{% end" in node.value
        ):
            templates[f"transformers {os.path.basename(path)}"] = node.value
trl = importlib.util.find_spec("trl")
for path in sorted(glob.glob(os.path.join(os.path.dirname(trl.origin), "chat_templates", "*.jinja"))) if trl else []:
    templates[f"trl {os.path.basename(path)}"] = open(path).read()

found = []
for name, template in templates.items():
    for place, chat in enumerate(chats):
        for prompt in (False, True):
            for kind, tokenizer in tokenizers.items():
                try:
                    out = tokenizer.apply_chat_template(
                        chat,
                        chat_template=template,
                        add_generation_prompt=prompt,
                        tokenize=True,
                        return_dict=True,
                        return_assistant_tokens_mask=True,
                    )
                    result = {"ids": out["input_ids"], "mask": out["assistant_masks"]}
                except Exception as error:
                    result = {"error": f"{type(error).__name__}: {error}"}
                found.append({"name": name, "chat": place, "prompt": prompt, "tokenizer": kind, **result})
json.dump(
    {"templates": templates, "found": found, "trl": trl is not None}, open(os.path.join(folder, "found.json"), "w")
)
