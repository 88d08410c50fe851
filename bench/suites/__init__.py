"""The suites, a module each.

A suite has ``HELP``, one line; ``add_arguments(parser)`` for its options; and ``run(options)``, which returns results.
"""
