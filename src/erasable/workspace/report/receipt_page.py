"""Page of a receipt: one file of HTML to read and print, which says nothing that is not signed."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

from erasable.core import _pages
from erasable.workspace.evidence import receipts, wording
from erasable.workspace.evidence.envelope import peek
from erasable.workspace.evidence.formats import unpack
from erasable.workspace.ledger.treatments import (
    CORRECTED,
    DELETED,
    NOT_COVERED,
    REFITTED,
    RETIRED,
    RETRAINED,
    REWRITTEN,
)
from erasable.workspace.targets.verdicts import NOT_PROVED, NOTHING, PURGED

_MEANS = {
    REWRITTEN: "the data set was written again without the records",
    DELETED: "the records were deleted from the model",
    REFITTED: "the model was trained again {on}",
    RETRAINED: "a command of the organization trained the model again {on}",
    RETIRED: "the model was given up, and its file erased",
    CORRECTED: "the values were corrected, and the old ones are gone",
    NOT_COVERED: "the model is trained elsewhere, and stayed as it was",
}
_OF_TARGETS = {
    PURGED: "a search of all files of the place found nothing of the records, and found others",
    NOT_PROVED: "the records were deleted, and something may still have a copy",
    NOTHING: "no record of the person was there",
    NOT_COVERED.name: "nobody was erased there",
}
_EXACTLY = {
    "bitwise": "Bitwise: it equals, bit for bit, one made {on}.",
    "converged": "Converged: it equals one made {on} up to a small tolerance.",
    "approximate": "Approximate: it forgets about; a comparison proves nothing.",
}


def render(body: bytes, public_pem: bytes) -> str:
    """Check a receipt with a public key (PEM), and return its page.

    Raise EvidenceError if the receipt does not hold.
    """
    found = receipts.check(body, public_pem)
    says = receipts.show(body)
    touched = wording.touched(says)
    inside = [row for row in touched if row[0] != "target"]
    treatments, exactness = ({row[i] for row in inside} for i in (2, 3))
    on = "from the corrected records" if "corrected" in says else "without the records"
    done = {one.name: text for one, text in _MEANS.items() if one.name in treatments}
    outside = {row[2] for row in touched if row[0] == "target"}
    done |= {
        (f"{name} (target)" if name in done else name): text
        for name, text in _OF_TARGETS.items()
        if name in outside
    }
    return _pages.render(
        Path(__file__).with_name("receipt.html"),
        "the page of a receipt",
        {},
        says=says,
        found=found,
        facts=wording.facts(says),
        touched=touched,
        doubts=wording.doubts(says),
        means=[(name, text.format(on=on)) for name, text in done.items()],
        exactly=[text.format(on=on) for name, text in _EXACTLY.items() if name in exactness],
        statement=sha256(peek(unpack(body, "the receipt")["envelope"])).hexdigest(),
    )
