"""International addresses: what email-validator takes for one address is one identity.

It is an oracle, and no part of the type `email`: a token must not depend on which version of the
tables of IDNA is installed.
"""

from __future__ import annotations

import unicodedata
from pathlib import Path

import idna
import pytest
from email_validator import EmailNotValidError, validate_email
from hypothesis import example, given, settings
from hypothesis import strategies as st

from effort import examples
from erasable.workspace import Workspace
from erasable.workspace.identity.canonical import canonical, former
from naming import named

EQUAL = [
    ("ann@m\u00fcnchen.de", "ann@xn--mnchen-3ya.de"),
    ("ann@mu\u0308nchen.de", "ann@XN--MNCHEN-3YA.DE"),
    ("J\u00dcRGEN@M\u00dcNCHEN.DE", "ju\u0308rgen@m\u00fcnchen.de"),
    ("\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a", "\u7528\u6237@xn--fsqu00a.xn--4rr70v"),
    ("\u7528\u6237@\u4f8b\u5b50\u3002\u5e7f\u544a", "\u7528\u6237@\u4f8b\u5b50.\u5e7f\u544a"),
    ("\u0434\u043c\u0438\u0442\u0440\u0438\u0439@\u043f\u0440\u0438\u043c\u0435\u0440.\u0440\u0444",
     "\u0414\u041c\u0418\u0422\u0420\u0418\u0419@xn--e1afmkfd.xn--p1ai"),
    ("a@stra\u00dfe.de", "a@xn--strae-oqa.de"),
    ("a@\u03b2\u03cc\u03bb\u03bf\u03c2.gr",
    "a@" + idna.encode("\u03b2\u03cc\u03bb\u03bf\u03c2").decode() + ".gr"),
    ("a@\uff4d\u00fcnchen.de", "a@m\u00fcnchen.de"),
    ("a@\u0645\u062b\u0627\u0644.\u0625\u062e\u062a\u0628\u0627\u0631",
    "a@xn--mgbh0fb.xn--kgbechtv"),
    # with a joiner, which IDNA allows here
    ("a@\u0646\u0627\u0645\u0647\u200c\u0627\u06cc.com", "a@xn--mgba3gch31f060k.com"),
    ("a@\u0dc1\u0dca\u200d\u0dbb\u0dd3.com",
    "a@" + idna.encode("\u0dc1\u0dca\u200d\u0dbb\u0dd3").decode() + ".com"),
]  # fmt: skip
TOKENS = {
    "ann@xn--mnchen-3ya.de": "ann@m\u00fcnchen.de", "ann@example.org": "ann@example.org",
    "ANN+TAG@Example.ORG.": "ann+tag@example.org", "a..b@x_y.de": "a..b@x_y.de",
    '"ann"@x.org': '"ann"@x.org', "ann@[192.0.2.1]": "ann@[192.0.2.1]",
    "ann@localhost": "ann@localhost",
    "ann@example.test": "ann@example.test", "a@xn--n3h.net": "a@\u2603.net",
    "a@xn--a.de": "a@xn--a.de",
    "ann": "ann", "@x.org": "@x.org", "ann@": "ann@", "a@xn--fa-hia.de": "a@fass.de",
}  # fmt: skip


@pytest.mark.parametrize(("one", "other"), EQUAL, ids=named)
def test_forms_of_one_address_are_one_identity(one: str, other: str) -> None:
    assert canonical("email", one) == canonical("email", other) == canonical("staff/email", one)
    for text in (one, other):
        for form in ("NFC", "NFD"):
            assert canonical("email", unicodedata.normalize(form, text)) == canonical("email", one)


@pytest.mark.parametrize("text", TOKENS, ids=named)
def test_what_was_accepted_is_what_it_was(text: str) -> None:
    assert canonical("email", text) == TOKENS[text]


def test_a_domain_with_a_joiner_is_found_under_the_token_of_before() -> None:
    assert former("email", "a@xn--mgba3gch31f060k.com") == "a@xn--mgba3gch31f060k.com"


SCRIPTS = (
    "aZ0\u00e4\u00d6\u00df\u00e9\u0130\u0131\u0142\u0394\u03c3\u03c2\u0416\u0439\u05d0\u0639\u0915\u093f"
    "\u0e01\u3042\u30ab\u4f8b\uac00\uff21\uff11"
)
LABELS = st.text(st.one_of(st.sampled_from(SCRIPTS), st.characters(categories=("Ll", "Lu", "Lo"))),
                 min_size=1, max_size=5)  # fmt: skip


@settings(max_examples=examples(1500))
@given(LABELS, LABELS, st.sampled_from(["de", "\u0440\u0444", "xn--p1ai"]))
@example("a", "\u1e9e", "de")
def test_what_the_oracle_takes_for_one_address_is_one(local: str, label: str, top: str) -> None:
    text = f"{local}@{label}.{top}"
    try:
        found = validate_email(text, check_deliverability=False)
    except EmailNotValidError:
        return
    if any(unicodedata.category(each) == "Cn" for each in found.normalized):
        return  # Python's tables are older
    same = [
        found.normalized,
        f"{found.local_part}@{found.ascii_domain}",
        text.replace(".", "\u3002"),
    ]
    same += [unicodedata.normalize(form, text) for form in ("NFC", "NFD")]
    assert {canonical("email", each) for each in same} == {canonical("email", text)}


def test_a_person_is_found_by_either_form(tmp_path: Path) -> None:
    made = Workspace.create(tmp_path / "ws")
    for number, (one, other) in enumerate(EQUAL):
        source = tmp_path / f"d{number}.csv"
        source.write_text(f"n,who\n1,{one}\n2,{other}\n3,x@y.org\n", encoding="utf-8")
        made.add_dataset(f"d{number}", source, id_column="n", subjects=["who:email"])
    made.request([other for _, other in EQUAL], type="email")
    assert made.process().n_records == 2 * len(EQUAL)
