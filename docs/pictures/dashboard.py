"""Takes the pictures of docs/dashboard.md in a browser: a year of flights, in the light and in the dark.

python docs/pictures/dashboard.py        writes docs/pictures/dashboard-light.png and dashboard-dark.png beside this file
"""

from __future__ import annotations

import sys
from pathlib import Path

from selenium.webdriver import Chrome
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.support.ui import WebDriverWait

import windrow as wr

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "examples"))
# Over the page's own range: the days around a blizzard.
SETTLED = """
    const source = Bokeh.documents[0]?.get_model_by_name('24 hours: flights source')
    return source && source.data.xs.length === 3 && Bokeh.documents[0].get_model_by_name('delay source').data.xs.length === 3
"""


def main() -> None:
    from dashboard import DELAYS
    from flights import load

    flights = load(None)
    operator = DELAYS.operator(mode="update", lateness="366 days")
    with wr.dashboard(operator, title="Departures from New York, 2013", port=0) as live:
        for low in range(0, len(flights), 10_000):
            batch = flights.slice(low, 10_000)
            live.process(batch)
            live.advance(batch["scheduled"][-1])
        for name, preference in (("light", 1), ("dark", 0)):
            browser = started(preference)
            try:
                browser.get(live.url)

                def settled(_: Chrome, browser: Chrome = browser) -> bool:
                    live.advance(flights["scheduled"][-1])
                    return bool(browser.execute_script(SETTLED))

                WebDriverWait(browser, 60, poll_frequency=0.5).until(settled)
                WebDriverWait(browser, 60, poll_frequency=3.0).until(settled)
                browser.save_screenshot(str(HERE / f"dashboard-{name}.png"))
                print(f"dashboard-{name}.png")
            finally:
                browser.quit()


def started(preference: int) -> Chrome:
    """A browser of which this is the preferred colour scheme: 0 is dark, 1 is light."""
    options = Options()
    words = (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--window-size=1200,1150",
        "--hide-scrollbars",
    )
    for word in (*words, f"--blink-settings=preferredColorScheme={preference}"):
        options.add_argument(word)
    return Chrome(options=options, service=Service("/usr/bin/chromedriver"))


if __name__ == "__main__":
    main()
