"""SGLang's front-end language on a running server: python sglang_frontend.py URL

A prompt becomes a program. `gen` asks for an answer and gives it a name, to be used further on; `fork` goes on from one
point in several ways at once; `choices` takes the likeliest of some given words. The server sees ordinary requests, and
its radix cache keeps whatever they have in common. Run it with the Python that SGLang is installed for.
"""

import json
import sys

import sglang as sgl

ASKED = ("summary", "argument", "argument")  # in the stem, and in each branch


@sgl.function
def review(s, plan):
    s += "The plan: " + plan + "\nIn short:" + sgl.gen("summary", max_tokens=12, temperature=0)
    sides = s.fork(2)
    for side, name in zip(sides, ("for", "against"), strict=True):
        side += f"\nAn argument {name} it:" + sgl.gen("argument", max_tokens=10, temperature=0)
    s += "\nFor it:" + sides[0]["argument"] + "\nAgainst it:" + sides[1]["argument"]
    s += "\nDo it? " + sgl.gen("verdict", choices=["yes", "no"])
    s["counts"] = [each.get_meta_info(name) for each, name in zip((s, *sides), ASKED, strict=True)]


def main(url: str) -> None:
    sgl.set_default_backend(sgl.RuntimeEndpoint(url))
    state = review.run(plan="serve every model of the company from one engine, and let the planner add workers.")
    counts = [{name: each[name] for name in ("prompt_tokens", "cached_tokens")} for each in state["counts"]]
    print(json.dumps({"text": state.text(), "verdict": state["verdict"], "counts": counts}))


if __name__ == "__main__":
    main(sys.argv[1])
