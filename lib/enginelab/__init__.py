"""What the course computes: inference engines in plain Python, and how to run the real ones.

Four layers; a module imports from its own layer or an earlier one:

facts     workload, trace, table, hardware, flags, image_flags, commands, engines, fidelity; machines, needs, results
          trtllm_reference, trtllm
models    batching, roofline, choosing, verdicts
          pictures: diffusion
          one engine: step_time, kvcache, engine, scheduler, calibration
          many: kvrouter, prefix_tree, router, routing, disaggregation
          over time: planner, scaling, forecast, engine_profile, traffic, autoscaling; break_even
runs      environments, inspection, preflight, logs, supervisor, server, client, images, generators, load; trtllm_server
          sweep, kept, progress
pictures  plot

Facts and models need the standard library alone, so the same code runs in a browser.
"""
