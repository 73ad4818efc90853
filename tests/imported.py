"""What a process that the program is forked from has imported."""

import gc

import icefall.cli
import icefall.run.copying
import icefall.run.data_app
import icefall.run.engine
import icefall.run.indexer
import icefall.run.limits
import icefall.run.metrics_app
import icefall.run.node_app
import icefall.run.replay
import icefall.run.up
import icefall.run.worker  # noqa: F401

gc.freeze()  # so that a collection in a forked process does not copy all of it
