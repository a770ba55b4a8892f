"""Every figure of the course: data in, matplotlib `Axes` out. (All chapters and labs.)

Each function sets its own style and leaves matplotlib's global settings alone. In a notebook, end the call with a
semicolon or keep the result in a name, so that only the figure is shown.
"""

from .break_even import attained, break_even_map, price_of_a_promise
from .charts import compare, replicas, roofline, routing, slots, static_and_continuous
from .diagrams import Edge, Node, flowchart, graph
from .dots import dots, engines
from .exploring import picture
from .fleet import day, disaggregation, router_flip
from .grids import rulers
from .palette import PALETTE
from .pictures import apart, gallery, picture_times
from .tokens import kv_blocks, prompt_blocks, step_tokens

__all__ = [
    "Edge",
    "Node",
    "PALETTE",
    "apart",
    "attained",
    "break_even_map",
    "compare",
    "day",
    "disaggregation",
    "dots",
    "engines",
    "flowchart",
    "gallery",
    "graph",
    "kv_blocks",
    "picture",
    "picture_times",
    "price_of_a_promise",
    "prompt_blocks",
    "replicas",
    "roofline",
    "router_flip",
    "routing",
    "rulers",
    "slots",
    "static_and_continuous",
    "step_tokens",
]
