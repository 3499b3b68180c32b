"""Writes two small tasks for lm-eval, of facts of our own: python lm_eval_tasks.py FOLDER"""

from __future__ import annotations

import json
import sys
from pathlib import Path

CAPITALS = {
    "France": "Paris", "Italy": "Rome", "Spain": "Madrid", "Germany": "Berlin", "Portugal": "Lisbon",
    "Austria": "Vienna", "Greece": "Athens", "Poland": "Warsaw", "Hungary": "Budapest", "Sweden": "Stockholm",
    "Norway": "Oslo", "Finland": "Helsinki", "Denmark": "Copenhagen", "Ireland": "Dublin", "Japan": "Tokyo",
    "China": "Beijing", "India": "New Delhi", "Egypt": "Cairo", "Kenya": "Nairobi", "Canada": "Ottawa",
    "Mexico": "Mexico City", "Brazil": "Brasilia", "Peru": "Lima", "Chile": "Santiago", "Cuba": "Havana",
    "Turkey": "Ankara", "Iran": "Tehran", "Iraq": "Baghdad", "Thailand": "Bangkok", "Vietnam": "Hanoi",
    "Australia": "Canberra", "Switzerland": "Bern",
}  # fmt: skip

ELEMENTS = [
    "hydrogen", "helium", "lithium", "beryllium", "boron", "carbon", "nitrogen", "oxygen", "fluorine", "neon",
    "sodium", "magnesium", "aluminium", "silicon", "phosphorus", "sulfur", "chlorine", "argon", "potassium", "calcium",
    "scandium", "titanium", "vanadium", "chromium", "manganese", "iron", "cobalt", "nickel", "copper", "zinc",
    "gallium", "germanium", "arsenic", "selenium", "bromine", "krypton", "rubidium", "strontium", "yttrium",
    "zirconium",
]  # fmt: skip

CHOICE = """\
task: elements
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: multiple_choice
doc_to_text: "The atomic number of {{{{element}}}} is"
doc_to_choice: "{{{{choices}}}}"
doc_to_target: "{{{{answer}}}}"
target_delimiter: " "
metric_list: [{{metric: acc}}, {{metric: acc_norm}}]
"""
GENERATE = """\
task: capitals
dataset_path: json
dataset_kwargs: {{data_files: {{test: {data}}}}}
test_split: test
output_type: generate_until
doc_to_text: "Question: What is the capital of {{{{country}}}}?\\nAnswer:"
doc_to_target: "{{{{capital}}}}"
generation_kwargs: {{until: ["Question:"], max_gen_toks: 24, do_sample: false, temperature: 0}}
filter_list:
  - name: named
    filter: [{{function: regex, regex_pattern: "({names})", fallback: none}}, {{function: take_first}}]
metric_list: [{{metric: exact_match}}]
"""


def main() -> None:
    folder = Path(sys.argv[1])
    names = list(CAPITALS.values())
    capitals = [{"country": country, "capital": capital} for country, capital in CAPITALS.items()]
    elements = [
        {"element": name, "choices": [str(number + d) for d in sorted({0, -1, 2, 5})], "answer": 1}
        for number, name in enumerate(ELEMENTS, 1)
    ]
    for name, rows, text in (("elements", elements, CHOICE), ("capitals", capitals, GENERATE)):
        data = folder / f"{name}.jsonl"
        data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        task = text.format(data=json.dumps(str(data)), names="|".join(names))
        (folder / f"{name}.yaml").write_text(task, encoding="utf-8")


if __name__ == "__main__":
    main()
