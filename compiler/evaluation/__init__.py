"""Quality of an engine: perplexity, agreement with a reference, multiple-choice accuracy.

`text` cuts token ids into windows, `scorer` gives their logits (an engine, or transformers), and
`perplexity`, `agreement` and `choice` make figures of them.
"""

from llmc.compiler.evaluation.agreement import Agreement, AgreementResult, agreement
from llmc.compiler.evaluation.choice import ChoiceResult, Question, choice, read_questions
from llmc.compiler.evaluation.perplexity import PerplexityResult, perplexity
from llmc.compiler.evaluation.scorer import EngineScorer, Scorer, TransformersScorer
from llmc.compiler.evaluation.text import Window, read_text, windows

__all__ = [
    "Agreement",
    "AgreementResult",
    "ChoiceResult",
    "EngineScorer",
    "PerplexityResult",
    "Question",
    "Scorer",
    "TransformersScorer",
    "Window",
    "agreement",
    "choice",
    "perplexity",
    "read_questions",
    "read_text",
    "windows",
]
