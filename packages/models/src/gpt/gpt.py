"""The model of gpt.ts in PyTorch, written from the same papers. Tests and benchmarks compare gpt.ts with it."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def forward(self, x):
        B, T, d = x.shape
        q, k, v = (y.view(B, T, self.heads, -1).transpose(1, 2) for y in self.qkv(x).split(d, dim=-1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout if self.training else 0.0)
        return self.out(y.transpose(1, 2).reshape(B, T, d))


class SwiGlu(nn.Module):
    def __init__(self, d):
        super().__init__()
        hidden = math.ceil(8 * d / 3 / 64) * 64
        self.gate = nn.Linear(d, hidden, bias=False)
        self.up = nn.Linear(d, hidden, bias=False)
        self.down = nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.attention_norm = nn.RMSNorm(width, eps=1e-5)
        self.attention = Attention(width, heads, dropout)
        self.mlp_norm = nn.RMSNorm(width, eps=1e-5)
        self.mlp = SwiGlu(width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x):
        x = x + self.dropout(self.attention(self.attention_norm(x)))
        return x + self.dropout(self.mlp(self.mlp_norm(x)))


class Gpt(nn.Module):
    def __init__(self, vocabulary, context, width, heads, layers, tied, dropout=0.0):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, width)
        self.position = nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads, dropout) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        if not tied:
            self.head = nn.Linear(width, vocabulary, bias=False)
        self.tied = tied
        self.dropout = nn.Dropout(dropout)

    def forward(self, tokens):
        x = self.embedding(tokens) + self.position(torch.arange(tokens.shape[1], device=tokens.device))
        x = self.dropout(x)
        for block in self.blocks:
            x = block(x)
        return F.linear(self.norm(x), self.embedding.weight if self.tied else self.head.weight)

    def loss(self, tokens, next):
        return F.cross_entropy(self(tokens).flatten(0, 1), next.flatten())
