/**
 * The template ChatML: a turn is <|im_start|>ROLE, a newline, its content and <|im_end|>. It is offered where a
 * tokenizer has no template of its own. What an assistant writes, and the token that ends it, are its answer.
 */
export const chatml: string = [
  "{% for message in messages %}",
  "{{ '<|im_start|>' + message['role'] + '\\n' }}",
  "{% if message['role'] == 'assistant' %}",
  "{% generation %}{{ message['content'] + '<|im_end|>' }}{% endgeneration %}",
  "{% else %}{{ message['content'] + '<|im_end|>' }}{% endif %}",
  "{{ '\\n' }}",
  "{% endfor %}",
  "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
].join("");
