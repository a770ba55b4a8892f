"""What the course computes: inference engines in plain Python, and how to run the real ones.

Four layers; a module imports from its own layer or an earlier one:

facts     workload, trace, table, hardware, flags, commands, engines, fidelity
models    batching, roofline, kvcache, step_time, engine, scheduler, calibration, routing, planner, choosing
runs      environments, preflight, logs, supervisor, server, client, load, sweep, kept, progress
pictures  plot

Facts and models need the standard library alone, so the same code runs in a browser.
"""
