"""What the course computes: inference engines in plain Python, and how to run the real ones.

Four layers; a module imports from its own layer or an earlier one:

facts     workload, trace, table, hardware, instances, flags, dynamo_flags, image_flags, atlas, commands, engines
          fidelity, machines, needs, results, trtllm_reference, trtllm
          a service in a cluster: deployment_schema, deployment; the book itself: printed, drift, needed, rerun
models    batching, roofline, footprint, kernels, quantization, parallelism, speculation, choosing, verdicts, cost
          pictures: diffusion
          one engine: step_time, kvcache, engine, scheduler, calibration, mocker, tuning
          many: kvrouter, prefix_tree, router, routing, disaggregation
          what a load test sees of one: measuring
          both again: compiled, a package
          over time: planner, scaling, forecast, engine_profile, traffic, autoscaling; break_even
          what a reader is asked: questions
          what a reader can set, and what comes back: exploring; explorations, a package
runs      environments, inspection, preflight, logs, supervisor, supervised, server, client, images, native, generators
          load; trtllm_server, dynamo_service, listening; sweep, kept, progress
pictures  plot; widgets

Facts and models need the standard library alone, so the same code runs in a browser; `compiled` uses numba if it is
there, for large workloads.
"""
