"""Each file derives one kind of row from a block. Pure: what they need to know besides the block is passed in."""
