"""The largest of some digits, as Recursion of Thought contexts in JSON Lines.

python3 docs/examples/maximum.py > docs/examples/maximum.jsonl
"""

import itertools
import json


def question(digits):
    return "<GO>" + ",".join(map(str, digits)) + "="


def compare(left, right):
    sign = "<LT>" if left < right else "<GT>" if left > right else "<EQ>"
    return {"question": f"<GO>{left}<VS>{right}=", "thoughts": [], "answer": f"{sign}<STOP>"}


def maximum(digits):
    """The context of one question, and after it those of its thoughts."""
    answer = f"{max(digits)}<STOP>"
    if len(digits) == 1:
        return [{"question": question(digits), "thoughts": [], "answer": answer}]
    first, second, *rest = digits
    comparison = compare(first, second)
    below = maximum([max(first, second), *rest])
    thoughts = [
        {"question": comparison["question"], "answer": comparison["answer"], "tail": False},
        {"question": below[0]["question"], "answer": answer, "tail": True},
    ]
    return [{"question": question(digits), "thoughts": thoughts, "answer": answer}, comparison, *below]


seen = set()
for digits in itertools.product(range(5), repeat=3):
    for context in maximum(list(digits)):
        if context["question"] not in seen:
            seen.add(context["question"])
            print(json.dumps(context))
