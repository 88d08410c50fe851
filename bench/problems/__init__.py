"""Data sets, as published or made up."""
