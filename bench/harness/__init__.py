"""What all suites share: options, processes, timing, certificates, tables and figures."""
