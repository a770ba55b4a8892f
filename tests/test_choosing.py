"""The decision tree: every path walked, against the lesson's three "use when" lists."""

from itertools import product

import pytest

from enginelab import choosing

KEYS = [condition.key for question in choosing.questions() for condition in question.conditions]


def by_the_lesson(facts):
    """The oracle: the lesson's flowchart as two lines."""
    if facts["hopper_or_newer"] and facts["supported"] and facts["top_performance"]:
        return "TensorRT-LLM"
    return "SGLang" if facts["large_moe"] or facts["image_or_video"] or facts["customization"] else "vLLM"


@pytest.mark.parametrize("answers", list(product([False, True], repeat=len(KEYS))), ids=str)
def test_every_combination_of_facts_walks_to_the_lessons_engine(answers):
    facts = dict(zip(KEYS, answers, strict=True))
    choice = choosing.engine(**facts)
    assert choice.name == by_the_lesson(facts)
    assert choice.why in str(choice)


def leaves(node, path=()):
    if isinstance(node, choosing.Answer):
        yield path, node
    else:
        yield from leaves(node.yes, (*path, (node, "Yes")))
        yield from leaves(node.no, (*path, (node, "No")))


LEAVES = list(leaves(choosing.TREE))


@pytest.mark.parametrize("path, leaf", LEAVES, ids=[leaf.name for _, leaf in LEAVES])
def test_every_path_of_the_tree_is_walked_and_explained(path, leaf):
    facts = {c.key: answer == "Yes" for question, answer in path for c in question.conditions}
    choice = choosing.engine(**facts)
    assert (choice.name, choice.why) == (leaf.name, leaf.why)
    assert all(line.startswith(f"{q.text} {answer}:") for line, (q, answer) in zip(choice.path, path, strict=True))


def test_what_is_not_said_counts_as_no():
    assert choosing.engine().name == "vLLM"
    assert choosing.engine(hopper_or_newer=True, supported=True, top_performance=True).name == "TensorRT-LLM"
    assert choosing.engine(large_moe=True).name == "SGLang"


def test_facts_that_the_tree_does_not_ask_are_named():
    with pytest.raises(ValueError, match="^budget is not asked by the tree"):
        choosing.engine(budget=True)
    for value in (1, "yes", None):
        with pytest.raises(ValueError, match="^supported must be True or False"):
            choosing.engine(supported=value)


@pytest.mark.parametrize("volume, many, foundation", list(product([False, True], repeat=3)))
def test_dynamo_pays_at_scale_only(volume, many, foundation):
    choice = choosing.dynamo(volume, many, foundation)
    assert choice.name == ("Dynamo" if volume and many else "the engine alone")
    assert choice.path


def test_dynamo_takes_yes_or_no():
    with pytest.raises(ValueError, match="^many_gpus must be True or False"):
        choosing.dynamo(True, 8)
