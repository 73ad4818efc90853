"""Calls between the processes of the program."""
