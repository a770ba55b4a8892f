"""What the course computes: inference engines in plain Python, and how to run the real ones.

Four layers; a module imports from its own layer or an earlier one:

facts     workload, trace, table, hardware, flags, commands, engines, fidelity
models    batching, roofline, choosing
          one engine: step_time, kvcache, engine, scheduler, calibration
          many: kvrouter, prefix_tree, router, routing, disaggregation
          both again: compiled, a package
          over time: planner, scaling, forecast, engine_profile, traffic, autoscaling; break_even
runs      environments, preflight, logs, supervisor, server, client, load; sweep, kept, progress
pictures  plot

Facts and models need the standard library alone, so the same code runs in a browser; `compiled` uses numba if it is
there, for large workloads.
"""
