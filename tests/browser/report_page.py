# Opt-in check of `tycho report`'s page in headless Chromium; CI checks the data in C++, and nothing there runs scripts.
#   python3 tests/browser/report_page.py TYCHO [FOLDER for pictures] [STEPS ...] [--sweep SWEEP]
# SWEEP is the folder of a finished sweep of at least ten trials, whose page is checked too; the sweep stays as it is, apart from its page.
# Needs `chromium` and no Python packages. Passed with Chromium 156.0.8078.108 on 27 November 2026 for 1,000, 100,000 and 1,000,000 steps.
import os
import signal
import subprocess
import sys
import tempfile
import time

from browser import Browser
from make_runs import write_run

sweep = os.path.abspath(sys.argv.pop()) if "--sweep" in sys.argv[:-1] else None
if sweep:
    sys.argv.remove("--sweep")
tycho, pictures = os.path.abspath(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None
sizes = [int(word) for word in sys.argv[3:]] or [1000, 100_000, 1_000_000]
failures = []


def expect(condition, what):
    print("ok  " if condition else "FAIL", what, flush=True)
    if not condition:
        failures.append(what)


def picture(browser, name, whole=False):
    if pictures:
        os.makedirs(pictures, exist_ok=True)
        browser.picture(os.path.join(pictures, name + ".png"), whole)


def box(browser, title):
    """Returns the drawing area of a plot: x, y, width, height."""
    browser.evaluate(f"[...document.querySelectorAll('figure')].find(f => f.querySelector('b').textContent === '{title}').scrollIntoView({{block: 'center'}})")
    find = f"[...document.querySelectorAll('figure')].find(f => f.querySelector('b').textContent === '{title}').querySelector('.u-over')"
    browser.wait_for(find + " !== null")
    return browser.evaluate(f"(() => {{ const b = {find}.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; }})()")


def hash_of(browser):
    return browser.evaluate("location.hash")


def read_and_use(browser, steps):
    browser.wait_for("document.querySelectorAll('canvas').length > 0")
    left, top, width, height = box(browser, "Loss")
    browser.mouse("mouseMoved", left + width / 2, top + height / 2)
    browser.wait_for("[...document.querySelectorAll('.tip')].some(tip => !tip.hidden && tip.textContent.includes('step'))")
    expect(True, "values below the cursor")
    picture(browser, f"{steps}-cursor")
    began = time.monotonic()
    browser.drag(left + width * 0.5, top + 40, left + width * 0.7, top + 40)
    browser.wait_for("location.hash.includes('zoom=')")
    print(f"     zoom took {time.monotonic() - began:.2f} s")
    zoom = [float(x) for x in hash_of(browser).split("zoom=")[1].split("&")[0].replace("%2C", ",").split(",")]
    expect(abs(zoom[0] - steps * 0.505) < steps * 0.02 and abs(zoom[1] - steps * 0.707) < steps * 0.02, f"a drag zooms: {zoom}")
    picture(browser, f"{steps}-zoomed")
    browser.evaluate("[...document.querySelectorAll('figure')].find(f => f.querySelector('b').textContent === 'Loss').focus()")
    browser.key("+")
    browser.wait_for(f"!location.hash.includes('zoom={zoom[0]:.9g}'.replace(',', '%2C'))")
    browser.key("0")
    browser.wait_for("!location.hash.includes('zoom=')")
    expect(True, "keys zoom, and show all")
    browser.evaluate("(s => { s.value = 34; s.dispatchEvent(new Event('input')); })(document.querySelector('input[type=range]'))")
    browser.wait_for("location.hash.includes('smooth=')")
    browser.evaluate("(s => { s.value = 'tokens'; s.dispatchEvent(new Event('change')); })(document.querySelector('select'))")
    browser.wait_for("location.hash.includes('by=tokens')")
    browser.evaluate("[...document.querySelectorAll('.bar label')].find(l => l.textContent === 'log y').click()")
    browser.wait_for("location.hash.includes('log_y=1')")
    time.sleep(0.3)
    picture(browser, f"{steps}-smooth-tokens-log")
    browser.evaluate("[...document.querySelectorAll('.bar label')].find(l => l.textContent === 'log x').click()")
    browser.evaluate("(s => { s.value = 'time'; s.dispatchEvent(new Event('change')); })(document.querySelector('select'))")
    browser.wait_for("location.hash.includes('by=time')")
    expect(browser.evaluate("document.querySelectorAll('canvas').length > 0"), "smoothing, tokens, time and logarithmic axes")
    browser.evaluate("document.querySelector('button.run').click()")
    browser.wait_for("location.hash.includes('hide=')")
    expect(browser.evaluate("document.querySelector('button.run').getAttribute('aria-pressed')") == "false", "a click hides a run")
    browser.evaluate("(s => { s.value = 'norm layer'; s.dispatchEvent(new Event('input')); })(document.querySelector('input[type=search]'))")
    shown = browser.evaluate("document.querySelectorAll('figure:not([hidden])').length")
    expect(shown == 2, f"the search leaves {shown} plots of norms by layer")
    view = hash_of(browser)
    browser.call("Page.reload")
    browser.wait_for("document.querySelectorAll('button.run').length > 0")
    expect(hash_of(browser) == view and browser.evaluate("document.querySelector('button.run').getAttribute('aria-pressed')") == "false", "a reload keeps the view")
    browser.evaluate("location.hash = ''")


def jumps(browser):
    """Returns how far elements moved by themselves while the page was loaded and scrolled through."""
    browser.evaluate("window.moved = 0; new PerformanceObserver(list => { for (const one of list.getEntries()) if (!one.hadRecentInput) moved += one.value; }).observe({type: 'layout-shift', buffered: true})")
    for at in range(0, 6000, 400):
        browser.evaluate(f"scrollTo(0, {at})")
        time.sleep(0.05)
    browser.evaluate("scrollTo(0, 0)")
    return browser.evaluate("window.moved")


def check_size(folder, steps):
    every = 1
    base, other, resumed = (f"{folder}/runs/{name}-{steps}" for name in ("base", "lr-high", "resumed"))
    write_run(base, steps, layers=12, odd_names=True, texts=5)
    runs = [base]
    if steps <= 100_000:
        write_run(other, steps, seed=1, scale=1.05, lr=6e-4, layers=12, texts=5)
        write_run(resumed, steps * 4 // 5, seed=2, scale=0.97, resume_at=steps // 2, every=every, texts=3)
        runs += [other, resumed]
    page = f"{folder}/{steps}.html"
    began = time.monotonic()
    subprocess.run([tycho, "report", *runs, "--out", page], check=True, stdout=subprocess.DEVNULL)
    took, num_bytes = time.monotonic() - began, os.path.getsize(page)
    print(f"     {len(runs)} runs of {steps} steps: written in {took:.2f} s, {num_bytes / 1e6:.2f} MB")
    for dark in (False, True):
        browser = Browser(dark=dark)
        opened = browser.open(page)
        browser.wait_for("document.querySelectorAll('canvas').length > 0")
        print(f"     opened in {opened:.2f} s, {browser.version}")
        expect(jumps(browser) < 0.02, "nothing jumps")
        expect(not browser.evaluate("document.querySelector('img') !== null"), "names are no HTML")
        expect(browser.evaluate("document.body.textContent.includes('</script><img src=x onerror=alert(1)>')"), "odd names are shown")
        picture(browser, f"{steps}-{'dark' if dark else 'light'}")
        browser.resize(1280, 4200)
        time.sleep(0.7)
        picture(browser, f"{steps}-{'dark' if dark else 'light'}-whole")
        browser.resize(1280, 900)
        if not dark and len(runs) > 1:
            read_and_use(browser, steps)
        browser.resize(420, 800)
        time.sleep(0.3)
        expect(browser.evaluate("document.documentElement.scrollWidth <= 420"), "a narrow window has no sideways scrolling")
        picture(browser, f"{steps}-narrow-{'dark' if dark else 'light'}")
        problems = browser.problems()
        expect(problems == [], f"no errors and no requests: {problems}")
        browser.close()


def check_watch(folder):
    run, page = f"{folder}/runs/live", f"{folder}/live.html"
    write_run(run, 400, layers=2, ended=False)
    with open(run + "/metrics.jsonl") as file:
        lines = file.readlines()
    with open(run + "/metrics.jsonl", "w") as file:
        file.writelines(lines[:len(lines) // 2])
    write_run(f"{folder}/runs/done", 400, seed=3, layers=2)
    watcher = subprocess.Popen([tycho, "report", run, f"{folder}/runs/done", "--watch", "--out", page], stdout=subprocess.DEVNULL)
    while not os.path.exists(page):
        time.sleep(0.05)
    browser = Browser()
    browser.open(page)
    browser.evaluate("window.is_old = true")
    browser.evaluate("location.hash = '#zoom=100,200&hide=' + encodeURIComponent('%s')" % f"{folder}/runs/done")
    browser.wait_for("document.querySelectorAll('button.run')[1].getAttribute('aria-pressed') === 'false'")
    browser.evaluate("scrollTo(0, 300)")
    with open(run + "/metrics.jsonl", "a") as file:
        file.writelines(lines[len(lines) // 2:])
    browser.wait_for("window.is_old !== true && document.querySelectorAll('button.run').length > 1")
    expect(browser.evaluate("location.hash.includes('zoom=100%2C200') && document.querySelectorAll('button.run')[1].getAttribute('aria-pressed') === 'false'"),
           "the open page reloads itself and keeps zoom and hidden runs")
    browser.wait_for("scrollY === 300")
    expect(True, "and its place")
    browser.evaluate("window.is_old = true")
    watcher.send_signal(signal.SIGINT)
    expect(watcher.wait() == 130, "Ctrl-C ends --watch with 130")
    browser.wait_for("window.is_old !== true && document.querySelectorAll('button.run').length > 1")
    expect(browser.evaluate("!document.querySelector('#live .rule').textContent.includes('reloads itself')"), "after the last writing the page is still")
    expect(browser.problems() == [], f"no errors: {browser.problems()}")
    browser.close()


def check_sweep(folder):
    """The page of a sweep: its tables, importances and curves; hidden trials and zoom stay over a reload by the reader and by --watch."""
    page = f"{folder}/sweep"
    watcher = subprocess.Popen([tycho, "sweep", "report", sweep, "--out", page, "--watch"], stdout=subprocess.DEVNULL)
    while not os.path.exists(page + ".html"):
        time.sleep(0.05)
    browser = Browser()
    browser.open(page + ".html")
    browser.evaluate("document.querySelector('#live').scrollIntoView()")  # plots are drawn where they are seen
    browser.wait_for("document.querySelectorAll('canvas').length > 0")
    expect(jumps(browser) < 0.02, "nothing jumps on the page of a sweep")
    headings = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.textContent)")
    for title in ("Best trials", "Importance of keys", "Each key against the metric", "All keys together", "Loss curves"):
        expect(any(heading.startswith(title) for heading in headings), f"a section {title!r}")
    shares = browser.evaluate("[...document.querySelectorAll('.importance i')].map(i => [i.getBoundingClientRect().width, parseFloat(i.style.width)])")
    expect(len(shares) > 1 and all(width > 0 or share == 0 for width, share in shares) and abs(sum(share for _, share in shares) - 100) < 1,
           f"importances are drawn and are 100 % together: {shares}")
    expect(shares == sorted(shares, key=lambda one: -one[1]), "the most important key is first")
    rows = browser.evaluate("[...document.querySelector('table').rows].map(row => row.cells.length)")
    expect(len(rows) > 10 and len(set(rows)) == 1, f"a table of {len(rows) - 1} trials")
    picture(browser, "sweep-light")
    browser.resize(1280, 4200)
    time.sleep(0.7)
    picture(browser, "sweep-light-whole")
    browser.resize(1280, 900)
    left, top, width, height = box(browser, "Loss")
    browser.drag(left + width * 0.5, top + 40, left + width * 0.7, top + 40)
    browser.wait_for("location.hash.includes('zoom=')")
    browser.evaluate("document.querySelectorAll('button.run')[1].click()")
    browser.wait_for("location.hash.includes('hide=')")
    picture(browser, "sweep-zoomed")
    view = hash_of(browser)

    def kept():
        return hash_of(browser) == view and browser.evaluate("document.querySelectorAll('button.run')[1].getAttribute('aria-pressed')") == "false"
    browser.call("Page.reload")
    browser.wait_for("document.querySelectorAll('button.run').length > 0")
    expect(kept(), "a reload keeps zoom and hidden trials")
    browser.evaluate("window.is_old = true")
    watcher.send_signal(signal.SIGINT)
    expect(watcher.wait() == 130, "Ctrl-C ends --watch of a sweep with 130")
    browser.wait_for("window.is_old !== true && document.querySelectorAll('button.run').length > 1")
    expect(kept(), "the page that reloads itself keeps zoom and hidden trials")
    browser.resize(420, 800)
    time.sleep(0.3)
    expect(browser.evaluate("document.documentElement.scrollWidth <= 420"), "a narrow window has no sideways scrolling on the page of a sweep")
    picture(browser, "sweep-narrow")
    expect(browser.problems() == [], f"no errors and no requests: {browser.problems()}")
    browser.close()


with tempfile.TemporaryDirectory() as scratch:
    if sweep:
        check_sweep(scratch)
    check_watch(scratch)
    for size in sizes:
        check_size(scratch, size)
print(f"{len(failures)} failures")
sys.exit(1 if failures else 0)
