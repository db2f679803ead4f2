"""Frameworks and providers: a module for each, which imports its library at first use.

Import the module that you need: ``from planning.integrations import openai``.
"""
