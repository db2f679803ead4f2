"""What the planning layer buys, without a model: counts, not times, each beside peers in the same run."""
