"""The official client asks for validators, rewards, subnets and chains in the live dialect, and checks every answer."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.counterparts import npm_project, program
from tests.demo.prepared import demo_serving
from tests.waiting import LIMIT_S

from icefall.api.networks.schema.metrics import NODE_FEES, STAKE_SERIES, SUBNET_FEES, TOTAL_FEES, VALIDATION_FEES

HERE = Path(__file__).parent / "avacloud"
NODE = "NodeID-7Xhw2mDxuDS44j42TCB6U5579esbSt3Lg"
PRIMARY = "11111111111111111111111111111111LpoYY"
OWNER = "local18jma8ppw3nhx5r4ap8clazz0dps7rv5u00z96u"
OF = "data.primaryNetwork"
CALLS: list[tuple[str, dict[str, Any]]] = [
    (f"{OF}.getNetworkDetails", {}),
    (f"{OF}.listValidators", {"pageSize": 2}),
    (f"{OF}.listValidators", {"sortBy": "delegationCapacity", "sortOrder": "asc"}),
    (f"{OF}.getValidatorDetails", {"nodeId": NODE}),
    (f"{OF}.listDelegators", {"pageSize": 2}),
    (f"{OF}.listL1Validators", {"includeInactiveL1Validators": True}),
    (f"{OF}.listSubnets", {"pageSize": 1}),
    (f"{OF}.getSubnetById", {"subnetId": PRIMARY}),
    (f"{OF}.listBlockchains", {"pageSize": 2}),
    (f"{OF}.getBlockchainById", {"blockchainId": "p-chain"}),
    (f"{OF}.rewards.listPendingRewards", {"nodeIds": NODE}),
    (f"{OF}.rewards.listHistoricalRewards", {"addresses": OWNER}),
]
SERIES: list[tuple[str, dict[str, Any]]] = [
    *(
        ("metrics.networks.getStakingMetrics", {"network": "fuji", "metric": metric, "subnetId": PRIMARY})
        for metric in STAKE_SERIES
    ),
    ("metrics.subnets.getValidators", {"subnetId": PRIMARY, "network": "fuji", "pageSize": 2}),
    *(("metrics.l1Validators.listMetrics", {"metric": metric}) for metric in TOTAL_FEES),
    *(("metrics.l1Validators.getMetricsBySubnetId", {"metric": metric, "subnetId": PRIMARY}) for metric in SUBNET_FEES),
    *(("metrics.l1Validators.getMetricsByNodeId", {"metric": metric, "nodeId": NODE}) for metric in NODE_FEES),
    *(
        ("metrics.l1Validators.getMetricsByValidationId", {"metric": metric, "l1ValidationId": PRIMARY})
        for metric in VALIDATION_FEES
    ),
]


def test_the_real_client_takes_every_answer_about_stakes(tmp_path: Path) -> None:
    folder = npm_project(HERE)
    requests = [(name, {"network": "fuji"} | request) for name, request in CALLS]
    answers = []
    with demo_serving(tmp_path, "--dialect=live") as server:
        for listener, some in (("data", requests), ("metrics", SERIES)):
            command = [program("node"), str(folder / "drive.js"), server.url(listener), json.dumps(some)]
            done = subprocess.run(command, capture_output=True, timeout=LIMIT_S, check=False)
            assert done.returncode == 0, done.stderr.decode()
            answers += json.loads(done.stdout)
    assert [(one["method"], one["error"]) for one in answers if "error" in one] == []
    assert all(one["pages"] for one in answers)
