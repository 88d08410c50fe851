"""What a pool of experts consists of: the experts, the rows they are compared on, their scores and weights."""
