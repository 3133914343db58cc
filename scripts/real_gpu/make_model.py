"""A model of Qwen3-8B's shape with generated weights, for vLLM and llama.cpp: for speed and memory only.

make_model.py vocabulary SOURCE.gguf VOCABULARY.gguf        a real model's tokenizer alone, to take along
make_model.py write VOCABULARY.gguf TOKENIZER_DIR FOLDER    FOLDER/hf (float16), FOLDER/f16.gguf, 2 x 14.7 GB

36 layers, width 4096, 32 heads and 8 KV heads of 128, MLP 12288, as Qwen3-8B; the vocabulary is the given
tokenizer's, so that both servers count the same tokens. One layer is generated and used 36 times. Output rows
of tokens that are not a whole word of letters are zero: greedy decoding then never ends an answer and never
emits half a character, so each token is an event of its own. Needs numpy, safetensors and llama.cpp's gguf.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import gguf
import numpy as np

LAYERS, WIDTH, HEADS, KV_HEADS, HEAD, MLP, CONTEXT = 36, 4096, 32, 8, 128, 12288, 40960
THETA, EPS = 1_000_000.0, 1e-6
LETTERS = re.compile("\u0120?[A-Za-z]+")  # GPT-2's byte alphabet writes a space as U+0120
# What llama.cpp calls a tensor, what transformers calls it, its shape.
LAYER = {
    "attn_norm": ("input_layernorm", (WIDTH,)),
    "attn_q": ("self_attn.q_proj", (HEADS * HEAD, WIDTH)),
    "attn_k": ("self_attn.k_proj", (KV_HEADS * HEAD, WIDTH)),
    "attn_v": ("self_attn.v_proj", (KV_HEADS * HEAD, WIDTH)),
    "attn_q_norm": ("self_attn.q_norm", (HEAD,)),
    "attn_k_norm": ("self_attn.k_norm", (HEAD,)),
    "attn_output": ("self_attn.o_proj", (WIDTH, HEADS * HEAD)),
    "ffn_norm": ("post_attention_layernorm", (WIDTH,)),
    "ffn_gate": ("mlp.gate_proj", (MLP, WIDTH)),
    "ffn_up": ("mlp.up_proj", (MLP, WIDTH)),
    "ffn_down": ("mlp.down_proj", (WIDTH, MLP)),
}


def values(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Norms are one, matrices normal with the usual deviation 0.02."""
    if len(shape) == 1:
        return np.ones(shape, np.float32)
    return (rng.standard_normal(shape, np.float32) * np.float32(0.02)).astype(np.float16)


def copy_vocabulary(source: Path, writer: gguf.GGUFWriter) -> list[str]:
    tokens: list[str] = []
    for name, field in gguf.GGUFReader(source).fields.items():
        if name.startswith("tokenizer."):
            kind = field.types[0]
            sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            content = field.contents()
            writer.add_key_value(name, content, kind, sub)
            if name == "tokenizer.ggml.tokens":
                tokens = content
    return tokens


def vocabulary(source: Path, target: Path) -> None:
    writer = gguf.GGUFWriter(target, "qwen3")
    copy_vocabulary(source, writer)
    finish(writer)


def finish(writer: gguf.GGUFWriter) -> None:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def write(vocabulary: Path, tokenizer: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    writer = gguf.GGUFWriter(folder / "f16.gguf.part", "qwen3")
    writer.add_name("Qwen3-8B's shape, generated weights")
    writer.add_block_count(LAYERS)
    writer.add_context_length(CONTEXT)
    writer.add_embedding_length(WIDTH)
    writer.add_feed_forward_length(MLP)
    writer.add_head_count(HEADS)
    writer.add_head_count_kv(KV_HEADS)
    writer.add_key_length(HEAD)
    writer.add_value_length(HEAD)
    writer.add_rope_freq_base(THETA)
    writer.add_layer_norm_rms_eps(EPS)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
    tokens = copy_vocabulary(vocabulary, writer)

    rng = np.random.default_rng(8)
    layer = {name: values(shape, rng) for name, (_, shape) in LAYER.items()}
    embedding, output = (values((len(tokens), WIDTH), rng) for _ in range(2))
    output[[LETTERS.fullmatch(t) is None for t in tokens]] = 0
    norm = np.ones(WIDTH, np.float32)
    for i in range(LAYERS):
        for name, array in layer.items():
            writer.add_tensor(f"blk.{i}.{name}.weight", array)
    for name, array in {"token_embd": embedding, "output": output, "output_norm": norm}.items():
        writer.add_tensor(f"{name}.weight", array)
    finish(writer)
    (folder / "f16.gguf.part").rename(folder / "f16.gguf")
    write_hf(folder / "hf", tokenizer, layer, embedding, output, norm)


def write_hf(
    folder: Path,
    tokenizer: Path,
    layer: dict[str, np.ndarray],
    embedding: np.ndarray,
    output: np.ndarray,
    norm: np.ndarray,
) -> None:
    from safetensors.numpy import save_file

    folder.mkdir(exist_ok=True)
    index: dict[str, str] = {}

    def shard(name: str, tensors: dict[str, np.ndarray]) -> None:
        save_file({k: v.astype(np.float16) for k, v in tensors.items()}, folder / name, {"format": "pt"})
        index.update(dict.fromkeys(tensors, name))

    for i in range(LAYERS):
        shard(
            f"layer{i:02}.safetensors",
            {f"model.layers.{i}.{LAYER[n][0]}.weight": a for n, a in layer.items()},
        )
    rest = {"model.embed_tokens": embedding, "lm_head": output, "model.norm": norm}
    shard("rest.safetensors", {f"{k}.weight": v for k, v in rest.items()})
    size = sum((folder / f).stat().st_size for f in set(index.values()))
    (folder / "model.safetensors.index.json").write_text(
        json.dumps({"metadata": {"total_size": size}, "weight_map": index})
    )
    for file in tokenizer.iterdir():
        if file.name.startswith(("tokenizer", "chat_template")):
            shutil.copyfile(file, folder / file.name)
    config = {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "attention_bias": False,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "head_dim": HEAD,
        "hidden_act": "silu",
        "hidden_size": WIDTH,
        "intermediate_size": MLP,
        "max_position_embeddings": CONTEXT,
        "num_attention_heads": HEADS,
        "num_hidden_layers": LAYERS,
        "num_key_value_heads": KV_HEADS,
        "rms_norm_eps": EPS,
        "rope_theta": THETA,
        "tie_word_embeddings": False,
        "torch_dtype": "float16",
        "vocab_size": len(embedding),
        "use_cache": True,
    }
    (folder / "config.json").write_text(json.dumps(config, indent=1))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["vocabulary", source, target]:
            vocabulary(Path(source), Path(target))
        case ["write", source, tokenizer, folder]:
            write(Path(source), Path(tokenizer), Path(folder))
        case _:
            sys.exit(__doc__)
