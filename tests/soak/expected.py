"""What a workspace should hold: a few dictionaries that a command changes in an obvious way."""

from __future__ import annotations

import copy
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

FEWEST = 5  # records, with which every model of the soak can be learned
OPEN = ("pending", "in_progress")
ERASED = ("swapped", "purged", "completed")


@dataclass
class Asked:
    """A request: what it asks for, and what became of it."""

    what: str  # a person, or "visit = 'zr0000017'"
    state: str = "open"  # held, erased, denied, cancelled
    matched: int | None = None

    @property
    def corrects(self) -> str | None:
        """The record that it corrects, if it does."""
        return self.what.removeprefix("correct ") if self.what.startswith("correct ") else None

    @property
    def record(self) -> str | None:
        """The record that it names, if it does not name a person."""
        return self.what.partition("'")[2].rstrip("'") or None


@dataclass
class Expected:
    """Which records remain, who is kept out, and every request that was taken in."""

    records: dict[str, dict[str, list[str]]] = field(default_factory=dict)  # data set: id: people
    requests: dict[str, Asked] = field(default_factory=dict)
    new: list[Asked] = field(default_factory=list)  # whose ids are not known yet
    out: set[str] = field(default_factory=set)  # people
    records_out: set[str] = field(default_factory=set)  # of visits
    owners: dict[str, list[str]] = field(default_factory=dict)  # of every record that ever came
    versions: dict[str, list[set[str]]] = field(default_factory=dict)  # what is left of each

    def after(self, step: dict[str, Any]) -> Expected:
        """Return what is expected when a step has been done."""
        # Hundreds of versions of a hundred ids each: a copy of every id would take the longest.
        versions = {name: [set(ids) for ids in each] for name, each in self.versions.items()}
        known = {id(self.versions): versions, id(self.owners): dict(self.owners)}
        then = copy.deepcopy(self, known)
        getattr(then, f"_{step['do']}", lambda step: None)(step)
        return then

    def _request(self, step: dict[str, Any]) -> None:
        what = [step["where"]] if "where" in step else step["values"]
        new = [Asked(each, "held" if step.get("hold") else "open") for each in what]
        if "ids" in step:  # as they were told
            self.requests.update(zip(step["ids"], new, strict=True))
        else:
            self.new += new

    def _correct(self, step: dict[str, Any]) -> None:
        new = Asked(f"correct {step['id']}")
        if "ids" in step:
            self.requests[step["ids"][0]] = new
        else:
            self.new.append(new)

    def _deny(self, step: dict[str, Any]) -> None:
        self.requests[step["id"]].state = "denied"

    def _cancel(self, step: dict[str, Any]) -> None:
        self.requests[step["id"]].state = "cancelled"

    def _hold(self, step: dict[str, Any]) -> None:
        self.requests[step["id"]].state = "held"

    def _resume(self, step: dict[str, Any]) -> None:
        self.requests[step["id"]].state = "open"

    def _append(self, step: dict[str, Any]) -> None:
        name = step["dataset"]
        self._replace(name, self.records[name] | self._admitted(step))

    def _sync(self, step: dict[str, Any]) -> None:
        self._replace(step["dataset"], self._admitted(step))

    def _replace(self, name: str, records: dict[str, list[str]]) -> None:
        self.records[name] = records
        self.versions.setdefault(name, []).append(set(records))

    def _admitted(self, step: dict[str, Any]) -> dict[str, list[str]]:
        rows: dict[str, list[str]] = step["rows"]
        self.owners.update({id: people for id, people in rows.items() if id not in self.owners})
        return {
            id: people
            for id, people in rows.items()
            if not self.out & set(people)
            and not (step["dataset"] == "visits" and id in self.records_out)
        }

    def _process(self, step: dict[str, Any]) -> None:
        asked = self.waiting()
        before = copy.deepcopy(self.records)
        for each in asked:
            each.state, each.matched = "erased", 0
            if each.corrects:
                continue
            for name, records in before.items():
                for id, people in records.items():
                    if each.what in people or (name == "visits" and id == each.record):
                        each.matched += 1
                        self.records[name].pop(id, None)
            if each.matched:
                self._keep_out(each)

    def left(self, name: str, ids: Iterable[str]) -> list[str]:
        """Return those records of a data set that nobody has had erased."""
        gone = self.records_out if name == "visits" else set()
        return [id for id in ids if id not in gone and not self.out & set(self.owners[id])]

    def waiting(self) -> list[Asked]:
        """Return the requests that are to be carried out."""
        return [each for each in [*self.requests.values(), *self.new] if each.state == "open"]

    def _keep_out(self, each: Asked) -> None:
        if each.record is None:
            self.out.add(each.what)
        else:
            self.records_out.add(each.record)
        for name, versions in self.versions.items():
            for ids in versions:
                ids -= {
                    id
                    for id in ids
                    if each.what in self.owners[id] or (name == "visits" and id == each.record)
                }

    def differences(self, seen: dict[str, Any]) -> list[str]:
        """Tell where a workspace differs from this; empty where it does not."""
        found = []
        for name, records in self.records.items():
            if records != seen["records"][name]:
                ids = records.keys() ^ seen["records"][name].keys()
                found.append(f"{name} differs in the records {sorted(ids)[:5]}")
        gone = self.requests.keys() - seen["requests"].keys()
        found += [f"request {id} is lost" for id in gone]
        fresh = [one for id, one in seen["requests"].items() if id not in self.requests]
        if sorted((each.what, each.state) for each in self.new) != sorted(
            (self._what(one), _coarse(one)) for one in fresh
        ):
            found.append(f"{len(fresh)} new requests, expected {len(self.new)}")
        for id, each in self.requests.items():
            one = seen["requests"].get(id)
            if one is not None and each.state != _coarse(one):
                found.append(f"request {id} is {one['state']}, expected {each.state}")
            if one is not None and each.state == "erased":
                # A record may be in versions that models still need: each is counted.
                if one["matched"] < (each.matched or 0):
                    found.append(f"request {id} found {one['matched']}, not {each.matched}")
                if each.matched != one["matched"] and id in self.settled:
                    found.append(f"request {id} was carried out twice")
        return found

    def _what(self, one: dict[str, Any]) -> str:
        """Return what a new request asks for; of one that is carried out, nobody knows any more."""
        if one["what"] is None and len(self.new) == 1:
            return self.new[0].what
        return str(one["what"])

    settled: set[str] = field(default_factory=set)

    def adopt(self, seen: dict[str, Any]) -> None:
        """Learn what only the workspace knows: ids of requests, counts over old versions."""
        for id, one in seen["requests"].items():
            if id not in self.requests:
                self.requests[id] = Asked(self._what(one), _coarse(one))
            each = self.requests[id]
            if each.state == "erased" and id not in self.settled:
                self.settled.add(id)
                each.matched = one["matched"]
                if each.matched and not each.corrects:
                    self._keep_out(each)
        self.new = []

    def gone(self, seen: dict[str, Any]) -> tuple[set[str], set[str]]:
        """Return the people and records that are completed: nothing may be left of them."""
        people, records = set(), set()
        for id, each in self.requests.items():
            done = seen["requests"][id]["state"] in ("purged", "completed")
            if done and each.matched and not each.corrects:
                if each.record is None:
                    people.add(each.what)
                else:
                    records.add(each.record)
        records |= {id for id, owners in self.owners.items() if people & set(owners)}
        # A request that waits names a record, also where that went with its person.
        waiting = (each for each in self.requests.values() if each.state in ("open", "held"))
        return people, records - {each.record for each in waiting}


def _coarse(one: dict[str, Any]) -> str:
    if one["state"] in OPEN:
        return "held" if one["hold"] else "open"
    return "erased" if one["state"] in ERASED else str(one["state"])
