"""The definition of sampling (runtime/src/sampler.h, logit_rules.h) in float64, written as plainly as it reads."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from llmc.runtime import SamplingParams

Array = npt.NDArray[np.float64]


def adjusted(logits: Array, params: SamplingParams, prompt: list[int], output: list[int], eos: list[int]) -> Array:
    """Step 0: what the rules make of a row of logits."""
    z = logits.astype(np.float64).copy()
    history = prompt + output
    for token, bias in (params.logit_bias or {}).items():
        z[token] += bias
    for token in set(history):
        z[token] = z[token] / params.repetition_penalty if z[token] > 0 else z[token] * params.repetition_penalty
    for token in set(output):
        z[token] -= params.presence_penalty + params.frequency_penalty * output.count(token)
    for token in range(len(z)):
        if forbidden(token, params, history, output, eos):
            z[token] = -np.inf
    return z


def forbidden(token: int, params: SamplingParams, history: list[int], output: list[int], eos: list[int]) -> bool:
    if params.allowed_token_ids is not None and token not in params.allowed_token_ids:
        return True
    enders = {*params.stop_token_ids, *([] if params.ignore_eos else eos)}
    if len(output) < params.min_tokens and token in enders:
        return True
    for word in params.bad_words or []:
        if [*output, token][-len(word) :] == list(word):
            return True
    size = params.no_repeat_ngram_size
    if size:
        last = [*history, token][-size:]
        return len(last) == size and any(history[i : i + size] == last for i in range(len(history) - size + 1))
    return False


def probabilities(z: Array, params: SamplingParams) -> Array:
    """Steps 2 to 5: the distribution that a token is drawn from, [vocab_size]."""
    if params.temperature == 0:
        p = np.zeros_like(z)
        p[int(np.argmax(z))] = 1
        return p
    x = z / params.temperature
    kept = np.isfinite(x)
    if params.top_k > 0 and params.top_k < len(x):
        kept &= x >= np.sort(x)[-params.top_k]
    if params.top_p < 1:
        q = np.where(kept, np.exp(x - x[kept].max()), 0)
        q /= q.sum()
        order = np.argsort(-x, kind="stable")
        order = order[kept[order]]
        sums = np.cumsum(q[order])
        threshold = x[order[int(np.searchsorted(sums, params.top_p - 1e-12))]]
        kept &= x >= threshold
    if params.min_p > 0:
        kept &= x - x[np.isfinite(x)].max() >= np.log(params.min_p)
    p = np.where(kept, np.exp(x - x[kept].max()), 0)
    return p / p.sum()
