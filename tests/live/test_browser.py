"""The dashboard in a real browser: it draws, goes on, zooms by windows of the query, and is left without a trace."""

from __future__ import annotations

import shutil
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.actions.wheel_input import ScrollOrigin
from selenium.webdriver.support.ui import WebDriverWait

import windrow as wr
from windrow.live.board import ZOOM, Dashboard, finest

DAY = 86_400_000_000
QUERY = wr.query(
    time="ts",
    key="k",
    windows=dict([("a day", wr.tumbling("1 day")), finest("10 minutes")]),
    aggregates={"n": wr.count(), "x": wr.m4("x")},
)
# In seconds; a machine with much to do takes its time.
PATIENCE = 60


def events(first: int, last: int) -> pa.Table:
    """Events of some days, of two keys."""
    times = np.arange(first * DAY, last * DAY, DAY // 500)
    values = np.sin(times / DAY * 6) + (times // DAY)
    keys = np.where(np.arange(len(times)) % 2 == 0, "north", "south <b>")
    return pa.table({"ts": pa.array(times, pa.timestamp("us")), "k": keys, "x": values})


@pytest.fixture(scope="module")
def browser() -> Iterator[Chrome]:
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    assert program, "install chromium and chromium-driver: make browser"
    assert driver, "install chromium and chromium-driver: make browser"
    options = Options()
    options.binary_location = program
    for word in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,900",
    ):
        options.add_argument(word)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    started = Chrome(options=options, service=Service(driver))
    yield started
    started.quit()


@pytest.fixture
def live() -> Iterator[Dashboard]:
    with wr.dashboard(QUERY.operator(mode="update", lateness="1000 days"), title="days", port=0) as board:
        yield board


def feed(live: Dashboard, table: pa.Table) -> None:
    live.process(table)
    live.advance(table["ts"][-1])


def until(browser: Chrome, met: Callable[[], Any]) -> Any:
    return WebDriverWait(browser, PATIENCE, poll_frequency=0.1).until(lambda _: met())


def drawn(browser: Chrome, name: str) -> dict[str, list[float]]:
    """The places of the points of each line of a chart, as the browser has them."""
    script = """
        const model = window.Bokeh?.documents[0]?.get_model_by_name(arguments[0])
        return model ? [model.data.key, Array.from(model.data.xs, (x) => Array.from(x))] : null
    """
    found = browser.execute_script(script, name + " source")
    return dict(zip(*found, strict=True)) if found else {}


def said(browser: Chrome, name: str) -> str:
    script = "return window.Bokeh?.documents[0]?.get_model_by_name(arguments[0])?.text ?? ''"
    return str(browser.execute_script(script, name))


def painted(browser: Chrome) -> int:
    """How many points of all canvases have a colour that is no grey."""
    script = """
        const canvases = [], look = (root) => root.querySelectorAll('*').forEach((e) => {
            if (e.tagName === 'CANVAS') canvases.push(e)
            if (e.shadowRoot) look(e.shadowRoot)
        })
        look(document)
        let count = 0
        for (const c of canvases) {
            if (!c.width || !c.height) continue
            const p = c.getContext('2d').getImageData(0, 0, c.width, c.height).data
            for (let i = 0; i < p.length; i += 4) count += p[i + 3] > 99 && Math.abs(p[i] - p[i + 2]) > 60
        }
        return count
    """
    return int(browser.execute_script(script))


def chart_center(browser: Chrome, name: str) -> tuple[int, int]:
    script = """
        const model = Bokeh.documents[0].get_model_by_name(arguments[0])
        const box = Bokeh.index.find_one(model).el.getBoundingClientRect()
        return [Math.round(box.x + box.width / 2), Math.round(box.y + box.height / 2)]
    """
    x, y = browser.execute_script(script, name)
    return x, y


def test_it_draws_what_there_is_and_goes_on_with_the_stream(browser: Chrome, live: Dashboard) -> None:
    feed(live, events(0, 20))
    browser.get(live.url)
    until(browser, lambda: len(drawn(browser, "a day: n").get("north", [])) == 19)
    until(browser, lambda: painted(browser) > 500)
    assert browser.title == "days"
    feed(live, events(20, 30))
    until(browser, lambda: len(drawn(browser, "a day: n").get("south <b>", [])) == 29)
    until(browser, lambda: "15,000" in said(browser, "head"))
    until(browser, lambda: "1970-01-29 00:00:00" in said(browser, "tables"))
    assert "south &lt;b&gt;" in said(browser, "tables")
    assert "<svg" in said(browser, "plan")
    assert [entry for entry in browser.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_zooming_adds_windows_to_the_running_query_and_leaving_removes_them(
    browser: Chrome, live: Dashboard
) -> None:
    table = events(0, 60)
    feed(live, table)
    browser.get(live.url)
    until(browser, lambda: len(drawn(browser, "a day: n").get("north", [])) == 59)

    def zooms() -> set[str]:
        live.advance(table["ts"][-1])
        return {name for name in live.operator.query.windows if name.startswith(ZOOM)} - {f"{ZOOM}10 minutes"}

    wide = until(browser, zooms)
    until(browser, lambda: len(drawn(browser, "n").get("north", [])) > 100)
    assert "for the charts that are open" in until(browser, lambda: said(browser, "note"))
    x, y = chart_center(browser, "n")
    wheel = ScrollOrigin.from_viewport(x, y)
    ActionChains(browser).scroll_from_origin(wheel, 0, -600).perform()
    narrow = until(browser, lambda: (found := zooms()) != wide and found)
    lengths = [wr.tumbling(name.removeprefix(ZOOM)) for name in narrow]
    assert all(live.operator.query.windows[name] in lengths for name in narrow)

    def is_near() -> bool:
        live.advance(table["ts"][-1])
        low, high = browser.execute_script(
            "const range = Bokeh.documents[0].get_model_by_name('range'); return [range.start, range.end]"
        )
        places = drawn(browser, "n").get("north", [])
        day = DAY / 1000
        return (
            high - low < 59 * day
            and len(places) > 20
            and low - day < min(places)
            and max(places) < high + day
        )

    until(browser, is_near)
    columns = browser.execute_script("return Bokeh.documents[0].get_model_by_name('x').inner_width")
    for name in ("n", "x", "a day: n"):
        assert all(len(points) <= 4 * (columns + 1) for points in drawn(browser, name).values())
    first = browser.current_window_handle
    browser.switch_to.new_window("tab")
    other = browser.current_window_handle
    browser.switch_to.window(first)
    browser.close()
    browser.switch_to.window(other)
    until(browser, lambda: not zooms())


def test_it_survives_a_stream_that_is_started_again(browser: Chrome, live: Dashboard) -> None:
    feed(live, events(0, 10))
    browser.get(live.url)
    until(browser, lambda: len(drawn(browser, "a day: n").get("north", [])) == 9)
    saved = live.operator.snapshot()
    query = live.operator.query
    again = wr.query(time="ts", key="k", windows=query.windows, aggregates=query.aggregates)
    live.attach(again.restore(saved))
    feed(live, events(10, 20))
    until(browser, lambda: len(drawn(browser, "a day: n").get("north", [])) == 19)


def test_readers_elsewhere_need_the_token(browser: Chrome) -> None:
    with wr.dashboard(QUERY.operator(), port=0, token="a secret") as live:
        feed(live, events(0, 10))
        bare, _, query = live.url.partition("?")
        assert query == "token=a%20secret"
        for wrong in (bare, bare + "?token=nonsense"):
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.urlopen(wrong)
        browser.get(live.url)
        until(browser, lambda: len(drawn(browser, "a day: n").get("north", [])) == 9)


def test_an_address_beyond_this_machine_gets_a_token_by_itself() -> None:
    with wr.dashboard(QUERY.operator(), port=0, address="0.0.0.0") as live:
        assert len(live.url.partition("?token=")[2]) > 20
    with wr.dashboard(QUERY.operator(), port=0) as live:
        assert live.url.startswith("http://127.0.0.1:")
        assert "token" not in live.url
        port = int(live.url.rpartition(":")[2].strip("/"))
        with pytest.raises(wr.QueryError, match=f"cannot listen on 127.0.0.1:{port}"):
            wr.dashboard(QUERY.operator(), port=port)
