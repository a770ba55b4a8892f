"""How kernels run for the book and for the labs' kept outputs: IPYTHONDIR names the folder above this one."""

c = get_config()  # noqa: F821
# A page can colour a vector figure for its dark theme.
c.InlineBackend.figure_formats = {"svg"}
c.HistoryManager.enabled = False
c.IPKernelApp.log_level = "ERROR"
