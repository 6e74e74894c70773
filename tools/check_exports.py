"""Compares an exported model with ours: see tools/check-exports, which calls this.

What ours says comes from the example `logits` of rot-train, by way of rot-nn. A greedy continuation by
another program is checked token by token: each must be the likeliest one after those before it.
"""

import json
import math
import random
import re
import subprocess
import sys
import tomllib
import urllib.request
from pathlib import Path

CONTEXTS = 100
PROMPTS = 100
PROBLEMS = 200
# Of a completion; a model that has learnt little may not come to an end.
MOST_TOKENS = 100
# All compute with 32-bit floats, in different orders.
TOLERANCE = 1e-3


def tokens(text):
    return re.findall(r"<[A-Z]+>|.", text)


class Ours:
    """The model as we run it."""

    def __init__(self, binaries, model):
        from safetensors import safe_open

        self.binaries, self.model = binaries, model
        weights = model / "best.safetensors" if model.is_dir() else model
        with safe_open(weights, "np") as file:
            notes = file.metadata()
        self.vocabulary = tokens(notes["vocabulary"])
        recipe = tomllib.loads(notes["recipe"])
        self.problems = [problem.rsplit("-", 1) for problem in recipe["data"]["problems"]]

    def run(self, *command, lines=(), may_fail=False):
        done = subprocess.run(
            [str(part) for part in command],
            input="".join(f"{line}\n" for line in lines),
            capture_output=True,
            text=True,
        )
        if done.returncode != 0 and not may_fail:
            sys.exit(f"{command[0]} failed: {done.stderr}")
        return done.stdout.splitlines()

    def contexts(self):
        """Different contexts of random problems, with what the model has to say in each."""
        found = {}
        for problem, size in self.problems:
            rot = self.binaries / "rot"
            questions = self.run(rot, "sample", problem, "--size", size, "--count", CONTEXTS)
            for line in self.run(rot, "contexts", "-", "--jsonl", lines=questions):
                found.update((context["x"], context["y"]) for context in json.loads(line)["contexts"])
        drawn = sorted(found.items())
        random.Random(0).shuffle(drawn)
        return drawn

    def logits(self, contexts):
        """For each context, a row of logits after each of its tokens."""
        program = self.binaries / "examples" / "logits"
        lines = self.run(program, self.model, lines=contexts)
        return [json.loads(line)["logits"] for line in lines]

    def check_greedy(self, prompts, completions):
        """Every token of a completion must be what we would say next; it must end where we would."""
        whole = [prompt + completion for prompt, completion in zip(prompts, completions)]
        for prompt, completion, rows in zip(prompts, completions, self.logits(whole)):
            said = tokens(completion)
            start = len(tokens(prompt)) - 1
            for token, row in zip(said, rows[start:]):
                best = self.vocabulary[row.index(max(row))]
                if token != best:
                    first, second = sorted(row)[:-3:-1]
                    sys.exit(
                        f"after '{prompt}' it says '{completion}', with {token} where we say {best} "
                        f"(ahead of the next by {first - second:.2g})"
                    )
            ends = [token in ("<STOP>", "<THINK>") for token in said]
            if any(ends[:-1]) or not (ends[-1:] == [True] or len(said) == MOST_TOKENS):
                sys.exit(f"'{completion}' after '{prompt}' must end at its first STOP or THINK")


def prompts(contexts):
    """Contexts up to where the model has to say something."""
    found = set()
    for x, y in contexts:
        x, y = tokens(x), tokens(y)
        starts = [i for i in range(1, len(y)) if y[i] != "<PAD>" and y[i - 1] in ("<PAD>", "<THINK>")]
        found.update("".join(x[:start]) for start in starts)
    drawn = sorted(found)
    random.Random(0).shuffle(drawn)
    return drawn[:PROMPTS]


def check_worst(difference):
    # What is not a number is not below it.
    if not difference <= TOLERANCE:
        sys.exit(f"that is more than {TOLERANCE:.0e}")


def check_hugging_face(ours, folder, contexts, asked):
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    assert model.dtype == torch.float32, model.dtype
    worst = 0.0
    for context, rows in zip(contexts, ours.logits(contexts)):
        ids = tokenizer(context).input_ids
        expected = [ours.vocabulary.index(token) for token in tokens(context)]
        assert ids == expected, f"'{context}' becomes {ids}, not {expected}"
        assert tokenizer.decode(ids) == context, f"'{tokenizer.decode(ids)}' is not '{context}'"
        with torch.no_grad():
            logits = model(torch.tensor([ids])).logits[0]
        worst = max(worst, (logits - torch.tensor(rows)).abs().max().item())
    print(f"Transformers: logits of {len(contexts)} contexts differ by {worst:.1e} at most")
    check_worst(worst)

    completions = []
    for prompt in asked:
        read = tokenizer(prompt, return_tensors="pt")
        read.pop("token_type_ids", None)
        said = model.generate(**read, max_new_tokens=MOST_TOKENS)[0, read.input_ids.shape[1] :]
        completions.append(tokenizer.decode(said, skip_special_tokens=True))
    ours.check_greedy(asked, completions)
    print(f"Transformers: {len(asked)} greedy completions are ours")


class LlamaCpp:
    """llama.cpp's server with a model, on this machine alone: as it comes, or with nothing in 16 bits."""

    def __init__(self, file, exact):
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(file)
        params.n_ctx = 8192
        params.n_parallel = 4
        params.hostnames = ["127.0.0.1"]
        params.port = 0
        params.verbosity = 1
        if exact:
            params.cache_type_k = params.cache_type_v = xllamacpp.ggml_type.GGML_TYPE_F32
            flash = xllamacpp.llama_flash_attn_type.LLAMA_FLASH_ATTN_TYPE_DISABLED
            params.flash_attn_type = flash
        self.server = xllamacpp.Server(params)
        self.url = self.server.listening_address

    def post(self, path, request):
        body = json.dumps(request).encode()
        request = urllib.request.Request(
            self.url + path, data=body, headers={"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)


def check_log_probabilities(ours, server, asked):
    for prompt in asked:
        ids = server.post("/tokenize", {"content": prompt, "add_special": True})["tokens"]
        expected = [ours.vocabulary.index(token) for token in tokens(prompt)]
        assert ids == expected, f"'{prompt}' becomes {ids}, not {expected}"

    worst = 0.0
    for prompt, rows in zip(asked, ours.logits(asked)):
        request = {"prompt": prompt, "n_predict": 1, "temperature": 0, "n_probs": len(rows[-1])}
        found = server.post("/completion", request)["completion_probabilities"][0]["top_logprobs"]
        assert len(found) == len(rows[-1]), f"{len(found)} log-probabilities"
        # As softmax has it.
        total = math.log(sum(math.exp(logit) for logit in rows[-1]))
        for token in found:
            worst = max(worst, abs(token["logprob"] - (rows[-1][token["id"]] - total)))
    print(f"llama.cpp: log-probabilities after {len(asked)} prompts differ by {worst:.1e} at most")
    check_worst(worst)


def check_completions(ours, server, asked):
    completions = []
    for prompt in asked:
        request = {"prompt": prompt, "max_tokens": MOST_TOKENS, "temperature": 0}
        completions.append(server.post("/v1/completions", request)["choices"][0]["text"])
    ours.check_greedy(asked, completions)
    print(f"llama.cpp: {len(asked)} greedy completions through /v1/completions are ours")


def said(trace):
    """What every context of a trace has said, by its question."""
    questions, contexts = {}, {}
    for line in trace.read_text().splitlines():
        event = json.loads(line)
        if event["event"] == "open":
            questions[event["context"]] = event["question"]
        elif event["event"] == "say":
            contexts.setdefault(questions[event["context"]], []).append(event["tokens"])
    return contexts


def check_solving(ours, server, here):
    """Whole problems through /v1/completions, with the traces of the native engine."""
    rot, asked = ours.binaries / "rot", []
    for problem, size in ours.problems:
        count = -(-PROBLEMS // len(ours.problems))
        asked += ours.run(rot, "sample", problem, "--size", size, "--count", count, "--seed", 1)
    asked = asked[:PROBLEMS]
    remote = ["--base-url", f"{server.url}/v1", "--spelling", "tokens"]
    solved, traces = [], []
    for name, model in [("native", [ours.model]), ("remote", ["exported", *remote])]:
        traces.append(here / f"{name}.jsonl")
        command = [rot, "solve", "-", "--json", "--trace", traces[-1], "--model", *model]
        # A model that has learnt little may fail at some, and must then fail at the same ones.
        lines = ours.run(*command, lines=asked, may_fail=True)
        solved.append([json.loads(line) for line in lines])
    native, remote = solved
    for question, one, other in zip(asked, native, remote, strict=True):
        if one.get("answer") != other.get("answer"):
            sys.exit(f"{question} is {other} by way of the server and {one} with us")
    one, other = (said(trace) for trace in traces)
    if one != other:
        differ = [question for question in one | other if one.get(question) != other.get(question)]
        question = differ[0]
        sys.exit(
            f"{len(differ)} contexts differ; in that of {question} the server says "
            f"{other.get(question)} and we say {one.get(question)}"
        )
    right = sum(record.get("correct") is True for record in native)
    print(
        f"llama.cpp: {len(asked)} problems solved by way of rot solve --base-url, {right} of them "
        f"right, with our {len(one)} contexts to the last token"
    )


def main():
    binaries, model, here = (Path(argument) for argument in sys.argv[1:])
    ours = Ours(binaries, model)
    contexts = ours.contexts()
    asked = prompts(contexts)
    check_hugging_face(ours, here / "hf", [x for x, _ in contexts[:CONTEXTS]], asked)
    exact = LlamaCpp(here / "model.gguf", exact=True)
    check_log_probabilities(ours, exact, asked)
    check_completions(ours, LlamaCpp(here / "model.gguf", exact=False), asked)
    check_solving(ours, exact, here)
    print("all agree")


main()
