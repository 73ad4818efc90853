"""The order in which `make bench ARGS=soak` and `chaos` kill: no process is spared by chance."""

import random
from collections import Counter

from bench.chaos import SUPERVISOR, least_killed

ROLES = ["engine", "indexer", "node", "data", "metrics", "replay", SUPERVISOR]


def test_every_role_has_its_turn_before_any_is_killed_again() -> None:
    for seed in range(20):
        kills: Counter[str] = Counter()
        for _ in range(3 * len(ROLES)):
            kills[least_killed(ROLES, kills, random.Random(seed))] += 1
            assert max(kills.values()) - min(kills[role] for role in ROLES) <= 1
        assert kills[SUPERVISOR] == 3


def test_a_role_that_could_not_be_killed_is_the_next() -> None:
    kills = Counter({role: 2 for role in ROLES if role != SUPERVISOR})
    without = [role for role in ROLES if role != SUPERVISOR]
    kills[least_killed(without, kills, random.Random(1))] += 1
    assert least_killed(ROLES, kills, random.Random(1)) == SUPERVISOR
