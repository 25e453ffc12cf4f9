"""The check of a built site finds each fault that it is there for, and none in a site without."""

import pytest

from tests import browser
from tests.check_site import complaints

PAGE = "<!DOCTYPE html><meta name='viewport' content='width=device-width'><main>{}</main>"
SEARCH = "<ul class='search'><li><p>odelab.RODAS4</p></li></ul>"
FAULTS = {
    "<a href='nowhere.html'>x</a>": "a dead link",
    "<a href='other.html#nowhere'>x</a>": "a link to a place that is not there",
    "<img src='nowhere.png'>": "does not show",
    "<div style='width: 500px'>wide</div>": "pixels wide on a telephone",
    "<script>undefined.name</script>": "a script says",
    "<script src='http://127.0.0.1:9/far.js'></script>": "the site asks for http",
}


def site(folder, body, found=SEARCH):
    for name, text in (("index", body), ("other", "<h1 id='here'>here</h1>"), ("search", found)):
        (folder / f"{name}.html").write_text(PAGE.format(text))
    return list(complaints(folder))


@pytest.mark.skipif(browser.find() is None, reason="no browser")
class TestChecks:
    def test_a_site_without_faults(self, tmp_path):
        body = "<a href='other.html#here'>x</a> <a href='https://example.org/'>elsewhere</a> <a href='#top'>up</a>"
        assert site(tmp_path, f"<p id='top'>{body}</p>") == []

    def test_every_fault_is_told(self, tmp_path):
        told = site(tmp_path, "".join(FAULTS))
        for words in FAULTS.values():
            assert any(words in one for one in told), words
        assert all(any(words in one for words in FAULTS.values()) for one in told)

    @pytest.mark.slow
    def test_a_search_that_finds_nothing(self, tmp_path):
        assert "search" in site(tmp_path, "", found="<ul class='search'></ul>")[0]
