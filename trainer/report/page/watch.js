// Reloads the page when its file was written again; the address keeps the view.

const kSecondsBetweenLooks = 2;

/** Loads the file again, hidden and only as far as its stamp. Never while somebody types. */
function watch() {
  let probe = null;
  addEventListener("message", event => {
    if (!probe || event.source !== probe.contentWindow || !event.data || typeof event.data.tycho !== "string") return;
    probe.remove();
    probe = null;
    if (event.data.tycho !== page.stamp && document.activeElement !== controls.filter) location.reload();
  });
  setInterval(() => {
    if (document.hidden) return;
    probe?.remove();
    probe = element("iframe", {hidden: true, src: location.href.split(/[?#]/)[0] + "?" + Date.now() + "#probe"});
    document.body.append(probe);
  }, 1000 * kSecondsBetweenLooks);
}
