"""The host's policy for a plan: what it demands, refuses and entails. Pure."""
