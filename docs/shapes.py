"""Model files of known shapes without weights, for `sluice plan`, which reads none: a GGUF header
and a hole in the file system. Used by plots.py.

A shape is named by its size; the formats are those of the usual files: the matrices in one format,
the output matrix in Q6_K where that is shorter.
"""

import os
import struct

# layers, dim, heads, kv_heads, head_dim, ffn_dim, vocab; experts, used, expert ffn_dim
SHAPES = {
    "1B": (16, 2048, 32, 8, 64, 8192, 128256, 0, 0, 0),
    "8B": (32, 4096, 32, 8, 128, 14336, 128256, 0, 0, 0),
    "14B": (40, 5120, 40, 8, 128, 17408, 151936, 0, 0, 0),
    "32B": (64, 5120, 64, 8, 128, 25600, 151936, 0, 0, 0),
    "70B": (80, 8192, 64, 8, 128, 28672, 128256, 0, 0, 0),
    "30B-A3B": (48, 2048, 32, 4, 128, 6144, 151936, 128, 8, 768),
}
# GGUF's number, values and bytes of a block.
FORMATS = {"F32": (0, 1, 4), "Q4_0": (2, 32, 18), "Q8_0": (8, 32, 34), "Q6_K": (14, 256, 210),
           "BF16": (30, 1, 2)}
UINT32, FLOAT32, STRING, ARRAY = 4, 6, 8, 9


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, value):
    if isinstance(value, list):
        return text(key) + struct.pack("<IIQ", ARRAY, STRING, len(value)) + b"".join(
            map(text, value))
    if isinstance(value, str):
        return text(key) + struct.pack("<I", STRING) + text(value)
    if isinstance(value, float):
        return text(key) + struct.pack("<If", FLOAT32, value)
    return text(key) + struct.pack("<II", UINT32, value)


def tensors(shape, weights):
    """(name, dimensions from the innermost, format) of every tensor."""
    layers, dim, heads, kv_heads, head_dim, ffn, vocab, experts, _, expert_ffn = shape
    yield "token_embd.weight", (dim, vocab), weights
    for i in range(layers):
        def named(name, *dimensions, form=weights, i=i):
            return f"blk.{i}.{name}.weight", dimensions, form
        yield named("attn_norm", dim, form="F32")
        yield named("attn_q", dim, heads * head_dim)
        yield named("attn_k", dim, kv_heads * head_dim)
        yield named("attn_v", dim, kv_heads * head_dim)
        yield named("attn_output", heads * head_dim, dim)
        if experts:
            yield named("attn_q_norm", head_dim, form="F32")
            yield named("attn_k_norm", head_dim, form="F32")
        yield named("ffn_norm", dim, form="F32")
        if experts:
            yield named("ffn_gate_inp", dim, experts, form="F32")
            yield named("ffn_gate_exps", dim, expert_ffn, experts)
            yield named("ffn_up_exps", dim, expert_ffn, experts)
            yield named("ffn_down_exps", expert_ffn, dim, experts)
        else:
            yield named("ffn_gate", dim, ffn)
            yield named("ffn_up", dim, ffn)
            yield named("ffn_down", ffn, dim)
    yield "output_norm.weight", (dim,), "F32"
    yield "output.weight", (dim, vocab), "Q6_K" if weights == "Q4_0" else weights


def write(folder, name, weights):
    """Writes the file; returns its path."""
    shape = SHAPES[name]
    layers, dim, heads, kv_heads, head_dim, ffn, vocab, experts, used, expert_ffn = shape
    arch = "qwen3moe" if experts else "llama"
    keys = {"general.architecture": arch, "general.name": f"{name} {weights}",
            f"{arch}.block_count": layers, f"{arch}.context_length": 131072,
            f"{arch}.embedding_length": dim, f"{arch}.feed_forward_length": ffn,
            f"{arch}.attention.head_count": heads, f"{arch}.attention.head_count_kv": kv_heads,
            f"{arch}.attention.key_length": head_dim, f"{arch}.attention.value_length": head_dim,
            f"{arch}.attention.layer_norm_rms_epsilon": 1e-5, f"{arch}.rope.freq_base": 5e5,
            "tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": [str(i) for i in range(vocab)]}
    if experts:
        keys |= {f"{arch}.expert_count": experts, f"{arch}.expert_used_count": used,
                 f"{arch}.expert_feed_forward_length": expert_ffn}
    infos, offset, count = b"", 0, 0
    for tensor, dimensions, form in tensors(shape, weights):
        number, values, size = FORMATS[form]
        infos += text(tensor) + struct.pack(f"<I{len(dimensions)}QIQ", len(dimensions),
                                            *dimensions, number, offset)
        bytes_ = size
        for d in dimensions:
            bytes_ *= d
        offset += (bytes_ // values + 31) // 32 * 32
        count += 1
    head = b"GGUF" + struct.pack("<IQQ", 3, count, len(keys)) + b"".join(
        entry(k, v) for k, v in keys.items()) + infos
    path = os.path.join(folder, f"{name}-{weights}.gguf")
    with open(path, "wb") as file:
        file.write(head + bytes(-len(head) % 32))
        file.truncate((len(head) + 31) // 32 * 32 + offset)
    return path
