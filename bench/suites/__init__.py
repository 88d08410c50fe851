"""The suites, a module each.

A suite has ``HELP``, a line; ``add_arguments(parser)`` for its options; and ``run(options)``, a list of results.
"""
