"""From the rows of readers to the results of the chain data interface."""
