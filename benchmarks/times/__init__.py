"""What is measured with a clock: each module is a part."""
