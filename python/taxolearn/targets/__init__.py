"""What is known of the labels: one per row, a set, or probabilities."""
