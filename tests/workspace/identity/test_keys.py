from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from securesystemslib.signer import CryptoSigner

from effort import examples
from erasable.core.errors import EvidenceError, InvalidIdsError, InvalidParameterError
from erasable.workspace.identity import keys as keys_module
from erasable.workspace.identity.canonical import TYPES, canonical
from erasable.workspace.identity.keys import Keys
from erasable.workspace.store import crash_points
from erasable.workspace.store.disk import Disk
from naming import named

KEYS = Keys.new()
VALUES = st.one_of(
    st.none(),
    st.text(min_size=1).filter(lambda text: text.strip() and text.isprintable()),
    st.integers(-100, 100),
    st.integers(-100, 100).map(float),
)


@pytest.fixture
def disk(tmp_path, monkeypatch):
    monkeypatch.delenv("ERASABLE_KEYS", raising=False)
    return Disk(tmp_path)


def kept(disk: Disk) -> dict:
    return json.loads(disk.read("keys.json"))


def rewrite(disk: Disk, data: bytes) -> None:
    disk.path("keys.json").write_bytes(data)


def test_token_is_the_hmac_of_type_and_spelling(disk):
    keys = Keys.make(disk)
    secret = bytes.fromhex(kept(disk)["secret"])
    expected = hmac.new(secret, b"staff/id\x0017", hashlib.sha256).hexdigest()[:32]
    assert keys.token("staff/id", 17.0) == expected
    assert keys.fingerprint == hmac.new(secret, b"erasable", hashlib.sha256).hexdigest()


def test_key_id_is_that_of_securesystemslib():
    assert KEYS.key_id == CryptoSigner(KEYS.signer).public_key.keyid


def test_other_keys_make_other_tokens():
    other = Keys.new()
    assert KEYS.token("id", 17) != other.token("id", 17)
    assert KEYS.fingerprint != other.fingerprint
    assert KEYS.key_id != other.key_id


@given(st.text(min_size=1).filter(str.strip))
def test_types_and_namespaces_never_share_a_token(text):
    types = [f"{space}{kind}" for space in ("", "a/", "b/", "a.b/") for kind in TYPES]
    made = set()
    for type in types:
        try:
            made.add((KEYS.token(type, text), type))
        except InvalidIdsError:
            made.add((type, type))
    assert len({token for token, _ in made}) == len(types)


@given(st.lists(VALUES), st.sampled_from(["id", "staff/id"]))
def test_tokens_are_those_of_each_value(values, type):
    expected = [None if value is None else KEYS.token(type, value) for value in values]
    assert KEYS.tokens(type, values) == expected


def test_each_value_is_hashed_once(monkeypatch):
    calls = []

    def counted(type, value, region):
        calls.append(value)
        return canonical(type, value, region)

    monkeypatch.setattr(keys_module, "canonical", counted)
    made = KEYS.tokens("id", ["a", "b", None, "a"] * 1000)
    assert sorted(calls) == ["a", "b"]
    assert made[:4] == [made[0], made[1], None, made[0]]
    assert made[0] != made[1]


@pytest.mark.parametrize("values", [[1, True], [True], [0.0, False], ["a", ""], [1.5],
                                    [float("nan")], [["a"]], ["a", {}]], ids=named)  # fmt: skip
def test_one_unfit_value_refuses_all(values):
    with pytest.raises(InvalidIdsError):
        KEYS.tokens("id", values)


def test_unknown_type_is_refused_even_of_nothing():
    with pytest.raises(InvalidParameterError):
        KEYS.tokens("telephone", [])


def test_keys_come_back_from_their_file(disk):
    made = Keys.make(disk)
    read = Keys.load(disk)
    assert (read.fingerprint, read.key_id, read.public_pem) == (
        made.fingerprint, made.key_id, made.public_pem
    )  # fmt: skip
    assert read.token("id", 17) == made.token("id", 17)
    assert read.signer.sign(b"x") == made.signer.sign(b"x")
    assert stat.S_IMODE(disk.path("keys.json").stat().st_mode) == 0o600


def test_file_is_private_whatever_the_umask(disk):
    before = os.umask(0)
    try:
        Keys.make(disk)
    finally:
        os.umask(before)
    assert stat.S_IMODE(disk.path("keys.json").stat().st_mode) == 0o600


def test_keys_of_an_attempt_that_was_cut_off_are_used(disk):
    assert Keys.make(disk).fingerprint == Keys.make(disk).fingerprint


def test_a_failing_disk_leaves_no_keys(disk):
    class FullError(OSError):
        pass

    def fail(effect, where):
        if effect == "rename":
            raise FullError(28, "No space left on device")

    with crash_points.watch(fail), pytest.raises(OSError, match="No space"):
        Keys.make(disk)
    assert list(disk.keys()) == []


def test_secrets_are_in_no_repr():
    made = Keys.new()
    assert repr(made) == f"Keys(key_id={made.key_id!r})"


def test_keys_elsewhere(disk, tmp_path, monkeypatch):
    outside = tmp_path / "outside"
    outside.mkdir()
    monkeypatch.setenv("ERASABLE_KEYS", str(outside / "mine.json"))
    with pytest.raises(EvidenceError, match="there is no key file"):
        Keys.load(disk)
    made = Keys.make(disk)
    assert not disk.path("keys.json").exists()
    assert Keys.load(disk).fingerprint == made.fingerprint
    assert [path.name for path in outside.iterdir()] == ["mine.json"]


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o660, 0o601])
def test_file_that_others_may_read_is_refused(disk, mode):
    Keys.make(disk)
    disk.path("keys.json").chmod(mode)
    for call in (Keys.load, Keys.make):
        with pytest.raises(EvidenceError, match="chmod 600"):
            call(disk)


def test_missing_file_is_one_line(disk):
    with pytest.raises(EvidenceError, match=r"there is no key file .* restore it"):
        Keys.load(disk)


def altered(change):
    def alter(disk):
        made = kept(disk)
        change(made)
        return json.dumps(made).encode()

    return alter


DAMAGES = {
    "empty": lambda disk: b"",
    "binary": lambda disk: bytes(range(256)),
    "null": lambda disk: b"null",
    "a list": lambda disk: b"[1, 2]",
    "cut": lambda disk: disk.read("keys.json")[:-20],
    "deep": lambda disk: b"[" * 100_000,
    "no version": altered(lambda made: made.pop("version")),
    "version 0": altered(lambda made: made.update(version=0)),
    "version true": altered(lambda made: made.update(version=True)),
    "no secret": altered(lambda made: made.pop("secret")),
    "short secret": altered(lambda made: made.update(secret="00")),
    "secret of words": altered(lambda made: made.update(secret="hush")),
    "secret of numbers": altered(lambda made: made.update(secret=7)),
    "no private key": altered(lambda made: made.pop("private_key")),
    "private key of numbers": altered(lambda made: made.update(private_key=7)),
    "no public key": altered(lambda made: made.pop("public_key")),
    "empty public key": altered(lambda made: made.update(public_key="")),
    "other public key": altered(
        lambda made: made.update(public_key=made["public_key"].replace("MCow", "MCox"))
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_file_is_refused_in_one_line(disk, damage):
    Keys.make(disk)
    rewrite(disk, DAMAGES[damage](disk))
    with pytest.raises(EvidenceError, match=r"is damaged; .*; restore it") as told:
        Keys.load(disk)
    assert "\n" not in str(told.value)


def test_file_of_a_newer_version_is_refused(disk):
    Keys.make(disk)
    rewrite(disk, altered(lambda made: made.update(version=2))(disk))
    with pytest.raises(EvidenceError, match="newer version"):
        Keys.load(disk)


@pytest.mark.parametrize("change", ["damaged", "of another pair", "not there"])
def test_private_key_that_does_not_suit_is_refused(disk, change):
    Keys.make(disk)
    private = {
        "damaged": "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
        "of another pair": Keys.new()._private_pem.decode(),
        "not there": "",
    }[change]
    rewrite(disk, altered(lambda made: made.update(private_key=private))(disk))
    keys = Keys.load(disk)  # which does not need it yet
    with pytest.raises(EvidenceError, match="private key") as told:
        _ = keys.signer
    assert "\n" not in str(told.value)


@settings(max_examples=examples(200))
@given(st.data())
def test_no_flipped_bit_goes_unnoticed_without_an_error_of_ours(tmp_path_factory, data):
    disk = Disk(tmp_path_factory.mktemp("keys"))
    disk.write("keys.json", KEYS.to_json(), mode=0o600)
    bits = bytearray(disk.read("keys.json"))
    bits[data.draw(st.integers(0, len(bits) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    rewrite(disk, bytes(bits))
    try:
        keys = Keys.load(disk)
        signature = keys.signer.sign(b"x")
    except EvidenceError:
        return
    same = (keys.fingerprint, keys.key_id) == (KEYS.fingerprint, KEYS.key_id)
    # The ledger knows fingerprint and key id; what is still the same signs the same.
    assert not same or signature == KEYS.signer.sign(b"x")
