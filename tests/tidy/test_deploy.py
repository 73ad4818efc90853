"""The files in deploy/: parsed, verified by the programs they are for, true to the settings and paths of Icefall."""

import re
import shlex
import subprocess
import sys
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.counterparts import program
from tests.tidy.source import ROOT

from icefall.api.http.row import Rest
from icefall.api.table import ENDPOINTS
from icefall.config.load import load

DEPLOY = ROOT / "deploy"
PATHS = {row.path for row in ENDPOINTS if isinstance(row, Rest)}


def accepted(words: list[str]) -> None:
    """The settings of a command are settings of its verb."""
    verb, *argv = words
    load(verb, [one for one in argv if not one.startswith("--config-file=")], {"HOME": "/"}, Path("/"))


def manifests() -> list[Any]:
    return list(yaml.safe_load_all((DEPLOY / "kubernetes" / "icefall.yaml").read_text()))


def test_the_manifests_hold_one_replica_with_probes_that_exist(tmp_path: Path) -> None:
    kinds = {one["kind"]: one for one in manifests()}
    assert set(kinds) == {"ConfigMap", "Service", "StatefulSet"}
    spec = kinds["StatefulSet"]["spec"]
    assert spec["replicas"] == 1, "a store has one writer"
    pod = spec["template"]["spec"]
    assert pod["enableServiceLinks"] is False
    [container] = pod["containers"]
    ports = {port["name"] for port in container["ports"]}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert container[probe]["httpGet"]["path"] in PATHS
        assert container[probe]["httpGet"]["port"] in ports
    assert {port["name"] for port in kinds["Service"]["spec"]["ports"]} == ports
    assert container["securityContext"]["readOnlyRootFilesystem"] is True
    assert pod["securityContext"]["runAsNonRoot"] is True
    mounted = {one["name"] for one in container["volumeMounts"]}
    claimed = {one["metadata"]["name"] for one in spec["volumeClaimTemplates"]}
    assert mounted == {one["name"] for one in pod["volumes"]} | claimed
    accepted(container["args"])
    (tmp_path / "icefall.toml").write_text(kinds["ConfigMap"]["data"]["icefall.toml"])
    assert load("up", [], {"HOME": "/"}, tmp_path).config.chain[0].id == "43114"


def test_the_compose_file_runs_commands_that_exist(tmp_path: Path) -> None:
    text = (DEPLOY / "container" / "compose.yaml").read_text()
    compose = yaml.safe_load(re.sub(r"\$\{ICEFALL_POSTGRES_PASSWORD:\?[^}]+\}", "secret", text))
    services = compose["services"]
    programs = ("indexer", "standby", "reader-1", "reader-2", "metrics", "node")
    assert set(services) == {"postgres", "balancer", *programs}
    config = tmp_path / "icefall.toml"
    config.write_text('[[chain]]\nid = "7"\nrpc = "http://127.0.0.1:1"\n')
    found = {}
    for name in programs:
        service = services[name]
        assert service["read_only"] is True
        verb, *argv = service["command"]
        environ = {**service["environment"], "HOME": "/"}
        if mounted := environ.get("ICEFALL_CONFIG_FILE"):
            assert service["volumes"][0] == f"./icefall.toml:{mounted}:ro"
            environ["ICEFALL_CONFIG_FILE"] = str(config)
        found[name] = load(verb, argv, environ, tmp_path / "elsewhere").config
        assert found[name].store.startswith("postgresql://icefall:secret@")
        assert f"@{next(iter(service['depends_on']))}/icefall" in found[name].store
    assert [chain.id for chain in found["standby"].chain] == ["7"]
    assert services["indexer"] == services["standby"]
    assert services["reader-1"] == services["reader-2"]
    for name, port in (("reader-1", found["reader-1"].data_port), ("metrics", found["metrics"].metrics_port)):
        path = re.findall(rf"'http://127.0.0.1:{port}(/[\w/-]+)'", str(services[name]["healthcheck"]))
        assert path[0] in PATHS
    assert "tmpfs" in services["node"]
    assert services["node"]["tmpfs"] == ["/tmp"], "its identity is in the volume"
    ports = {"reader-1": found["reader-1"].data_port, "reader-2": found["reader-2"].data_port,
             "metrics": found["metrics"].metrics_port, "node": found["node"].http_port}  # fmt: skip
    balanced = (DEPLOY / "container" / "nginx.conf").read_text()
    assert re.findall(r"server ([\w-]+):(\d+) ", balanced) == [(name, str(port)) for name, port in ports.items()]
    balancer = services["balancer"]
    listens = re.findall(r"listen (\d+);", balanced)
    assert [one.rpartition(":")[0].rpartition(":")[2] for one in balancer["ports"]] == listens
    assert [one.rpartition(":")[2] for one in balancer["ports"]] == listens
    assert balancer["ports"][-1].startswith("127.0.0.1:"), "the node is for people one trusts"
    assert set(balancer["depends_on"]) == set(ports)


def test_only_the_address_of_the_balancer_is_believed() -> None:
    compose = yaml.safe_load((DEPLOY / "container" / "compose.yaml").read_text())
    address = compose["services"]["balancer"]["networks"]["default"]["ipv4_address"]
    for name in ("reader-1", "reader-2", "metrics"):
        named = [one for one in compose["services"][name]["command"] if one.startswith("--trusted-proxies=")]
        assert named == [f"--trusted-proxies={address}"]
    [network] = compose["networks"]["default"]["ipam"]["config"]
    assert ip_address(address) in ip_network(network["subnet"])
    assert ip_address(address) not in ip_network(network["ip_range"]), "another container could get it"
    text = (DEPLOY / "container" / "nginx.conf").read_text()
    assert text.count("proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;") == 1
    assert all("proxy_set_header" not in block for block in re.findall(r"server \{.*?\n  \}", text, re.DOTALL))


def test_nginx_accepts_the_balancer(tmp_path: Path) -> None:
    nginx = program("nginx")
    text = (DEPLOY / "container" / "nginx.conf").read_text()
    text = re.sub(r"server [\w-]+:", "server 127.0.0.1:", text)  # names that only the containers' network resolves
    (tmp_path / "nginx.conf").write_text(f"pid {tmp_path}/pid; error_log {tmp_path}/log;\n{text}")
    command = [nginx, "-t", "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_container_file_runs_as_another_user_and_is_checked() -> None:
    lines = (DEPLOY / "container" / "Containerfile").read_text()
    assert "\nUSER 10001\n" in lines
    assert "HEALTHCHECK" in lines
    assert re.search(r"'http://127.0.0.1:9650(/[\w/]+)'", lines)
    path = re.findall(r"'http://127.0.0.1:9650(/[\w/]+)'", lines)[0]
    assert path in PATHS
    command = re.findall(r"^CMD (\[.*\])$", lines, re.MULTILINE)[-1]
    accepted(yaml.safe_load(command))
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", lines, re.MULTILINE):
        assert all((ROOT / name).exists() for name in copied.split())


def test_the_steps_of_the_container_file_work_in_a_clean_directory(tmp_path: Path) -> None:
    """Those that need no image: what is copied is enough to build the package."""
    lines = (DEPLOY / "container" / "Containerfile").read_text()
    for copied in re.findall(r"^COPY (?!--from)(.+) \S+$", lines, re.MULTILINE):
        for name in copied.split():
            subprocess.run(["cp", "-r", str(ROOT / name), str(tmp_path)], check=True)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "out"),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert list((tmp_path / "out").glob("icefall-*.whl"))


@pytest.mark.parametrize("unit", ["icefall.service", "icefall-backup.service", "icefall-backup.timer"])
def test_systemd_accepts_the_units(unit: str, tmp_path: Path) -> None:
    """With a program in place of the installed one, which `verify` looks for."""
    analyze = program("systemd-analyze")
    for path in (DEPLOY / "systemd").iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("/opt/icefall/bin/icefall", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(tmp_path / unit)], capture_output=True, text=True, check=False)
    said = [line for line in done.stderr.splitlines() if unit in line]
    assert (done.returncode, said) == (0, []), done.stderr


def test_the_service_starts_with_settings_that_exist() -> None:
    text = (DEPLOY / "systemd" / "icefall.service").read_text()
    command = shlex.split(re.findall(r"^ExecStart=(.+)$", text, re.MULTILINE)[0])
    accepted(command[1:])
    hardened = (
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        "CapabilityBoundingSet=",
        "SystemCallFilter=@system-service",
    )
    assert all(line in text.splitlines() for line in hardened)
