"""The joint of plan, policy, tools and session: the planning tools, and what a session keeps of a plan."""
