"""How the Explorer is served: addresses, headers, caching, prefixes, and what turns it off."""

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser
from tests.explorer.browser import needs_chromium, tab
from tests.explorer.prefix import behind_prefix
from tests.server import Reply, Server, serving

from icefall.web.site import Link, explorer_files, policy_hash

FORBIDDEN = ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function", "srcdoc")
OURS = {path: file for path, file in explorer_files().items() if not path.endswith(".svg")}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving("up", tmp_path_factory.mktemp("served")) as server:
        yield server


def get(server: Server, path: str, listener: str = "data", **headers: str) -> Reply:
    return server.ask("GET", path, listener=listener, headers={k.replace("_", "-"): v for k, v in headers.items()})


def port(server: Server, listener: str) -> int:
    found = urlsplit(server.url(listener)).port
    assert found
    return found


def test_every_file_is_served_with_its_type_and_can_be_cached(program: Server) -> None:
    for path, file in explorer_files().items():
        reply = get(program, path)
        assert (reply.status, reply.header("content-type"), reply.body) == (200, file.media, file.body)
        assert reply.header("cache-control") == "no-cache"
        assert reply.header("x-content-type-options") == "nosniff"
        etag = reply.header("etag")
        assert etag
        for known in (etag, f'"other", {etag}', "*"):
            again = get(program, path, if_none_match=known)
            assert (again.status, again.body, again.header("etag")) == (304, b"", etag)
        assert get(program, path, if_none_match='"other"').status == 200
    head = program.ask("HEAD", "/", listener="data")
    assert (head.status, head.body) == (200, b"")


def test_files_are_compressed(program: Server) -> None:
    reply = get(program, "/explorer/parts.js", accept_encoding="gzip")
    assert reply.header("content-encoding") == "gzip"
    assert len(reply.body) < len(OURS["/explorer/parts.js"].body) / 2


def test_the_first_paint_waits_for_the_page_alone(program: Server) -> None:
    page = get(program, "/").body
    assert b"stylesheet" not in page
    assert re.findall(rb"<script[^>]*src=[^>]*>", page) == [b'<script type="module" src="explorer/main.js">']
    preloaded = set(re.findall(rb'rel="modulepreload" href="explorer/([^"]+)"', page))
    imported = {b"pages/home.js"}
    for _ in range(3):
        imported |= {
            name.rpartition(b"./")[2] for one in imported
            for name in re.findall(rb'from "([^"]+)"', get(program, f"/explorer/{one.decode()}").body)
        }  # fmt: skip
    assert imported - {b"main.js"} <= preloaded, "what home needs is fetched at once, not one after the other"


def test_the_policy_allows_this_host_and_the_two_other_listeners_only(program: Server) -> None:
    policy = get(program, "/").header("content-security-policy")
    assert policy
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    node, metrics = (f"127.0.0.1:{port(program, name)}" for name in ("node", "metrics"))
    assert rules["connect-src"] == ["'self'", node, metrics]
    assert rules["default-src"] == ["'none'"]
    page = get(program, "/").body
    (style,), (script,) = (re.findall(b"<%s>(.*?)</" % element, page, re.DOTALL) for element in (b"style", b"script"))
    assert rules["script-src"] == ["'self'", policy_hash(script)]
    assert rules["style-src"] == [policy_hash(style)]
    assert "unsafe" not in policy
    config = get(program, "/explorer/config.json").json()
    assert (config["nodeUrl"], config["metricsUrl"]) == (f"//{node}", f"//{metrics}")
    named = get(program, "/", Host="localhost:1").header("content-security-policy")
    assert f"localhost:{port(program, 'node')}" in (named or "")


def test_a_host_header_cannot_write_into_the_policy() -> None:
    for host in ("a; script-src *", "a b", "", "a\r\nx: y", "[::1]; x", "a/b", "user@a"):
        assert Link(port=9650).seen_from(host) == ""
    assert Link(port=9650).seen_from("[::1]:9652") == "//[::1]:9650"
    assert Link("https://a.example/node/").seen_from("b; x") == "https://a.example/node"
    assert Link("https://a.example/node/").policy_source("b") == "https://a.example/node/"
    assert Link("https://a.example").policy_source("b") == "https://a.example"


def test_other_methods_and_paths_are_refused_as_before(program: Server) -> None:
    for path in ("/explorer", "/explorer/", "/explorer/nothing.js", "/explorer/../explorer/main.js", "/index.html"):
        assert get(program, path).status == 404
    assert program.ask("POST", "/", listener="data").status == 404
    assert get(program, "/explorer/main.js", "node").status == 404


def test_the_other_listeners_link_to_it(program: Server) -> None:
    for listener in ("node", "metrics"):
        reply = get(program, "/", listener)
        assert (reply.status, reply.header("content-type")) == (200, "text/html; charset=utf-8")
        assert f'href="//127.0.0.1:{port(program, "data")}/"' in reply.body.decode()
        assert "default-src 'none'" in (reply.header("content-security-policy") or "")


def test_it_can_be_turned_off(tmp_path: Path) -> None:
    with serving("up", tmp_path, "--explorer=false") as server:
        assert get(server, "/").status == 404
        assert get(server, "/explorer/main.js").status == 404
        page = get(server, "/", "node").body.decode()
        assert "Explorer" not in page
        assert "docs" in page


def test_it_names_the_addresses_of_the_settings(tmp_path: Path) -> None:
    given = (
        "--node-url=https://a.example/node/",
        "--metrics-url=http://b.example:8080",
    )
    with serving("data", tmp_path, *given) as server:
        policy = get(server, "/").header("content-security-policy")
        assert "connect-src 'self' https://a.example/node/ http://b.example:8080;" in (policy or "")
        assert "img-src 'self' data:;" in (policy or "")
        config = get(server, "/explorer/config.json").json()
        assert (config["nodeUrl"], config["metricsUrl"]) == ("https://a.example/node", "http://b.example:8080")


def test_scripts_write_no_markup_and_name_no_other_host() -> None:
    for path, file in OURS.items():
        text = file.body.decode()
        assert [word for word in FORBIDDEN if word in text] == [], path
        found = {address for address in re.findall(r"https?://[^\s\"'`)]+", text) if "w3.org" not in address}
        assert found == set(), path
        assert " style=" not in text, path
    assert OURS["/"].body.count(b"<script") == 2  # main.js, and the one whose hash is in the policy


def test_no_module_imports_itself_through_others() -> None:
    """Those that a page loads later (`import()`) may lead back."""
    imports = {
        path: {
            posixpath.normpath(posixpath.join(posixpath.dirname(path), name))
            for name in re.findall(r'^(?:import|export)[^"]*from "([^"]+)"', file.body.decode(), re.MULTILINE)
        }
        for path, file in OURS.items()
        if path.endswith(".js")
    }
    assert all(imports.keys() >= names for names in imports.values())
    while free := [path for path, names in imports.items() if not names & imports.keys()]:
        for path in free:
            del imports[path]
    assert sorted(imports) == [], "these import each other"


@needs_chromium
def test_it_works_behind_a_path_prefix(program: Server, browser: Browser) -> None:
    with behind_prefix(program.url("data"), "/a/b/") as address:
        others = (program.url("node"), program.url("metrics"))
        with tab(browser, address, *others) as opened:
            opened.open("/operations")
            assert "Chain data" in opened.text()
            assert opened.problems == []
            assert all("/a/b/" in url for url in opened.requests if urlsplit(url).netloc == urlsplit(address).netloc)
