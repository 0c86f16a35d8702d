"""What is said in SASL exchanges, with the examples of the RFCs; and the text that holds names and passwords."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import cast

import pytest

from headpond.client.jaas import parse_jaas
from headpond.client.sasl import Distrusted, OAuthBearer, Plain
from headpond.client.scram import Scram
from headpond.client.security import Mechanism, Sasl

PLAIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


def scram(mechanism: str, nonce: str, password: str = "pencil", username: str = "user") -> Scram:
    exchange = Scram(Sasl(cast(Mechanism, mechanism), username, password), b"")
    exchange._nonce = nonce  # the RFC's own, which is not random
    return exchange


def test_the_example_of_rfc_7677_comes_out() -> None:
    exchange = scram("SCRAM-SHA-256", "rOprNGfwEbeRWgbNEkqO")
    assert exchange.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = exchange.answer(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert final == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert exchange.answer(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None


def test_sha_512_is_the_same_with_a_longer_hash() -> None:
    """Calculated step by step, as RFC 5802 writes it."""
    exchange = scram("SCRAM-SHA-512", "abc")
    challenge = f"r=abcdef,s={base64.b64encode(b'salt').decode()},i=4096"
    final = (exchange.answer(challenge.encode()) or b"").decode()
    salted = hashlib.pbkdf2_hmac("sha512", b"pencil", b"salt", 4096)
    client_key = hmac.new(salted, b"Client Key", "sha512").digest()
    signed = f"n=user,r=abc,{challenge},c=biws,r=abcdef".encode()
    signature = hmac.new(hashlib.sha512(client_key).digest(), signed, "sha512").digest()
    proof = bytes(one ^ other for one, other in zip(client_key, signature, strict=True))
    assert final == f"c=biws,r=abcdef,p={base64.b64encode(proof).decode()}"


def test_signs_that_mean_something_in_scram_are_written_otherwise_in_a_name() -> None:
    assert scram("SCRAM-SHA-256", "n", username="a=b,c").first() == b"n,,n=a=3Db=2Cc,r=n"


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        ("r=other,s=c2FsdA==,i=4096", "nonce"),
        ("r=abc,s=c2FsdA==,i=4096", "nonce"),
        ("r=abcdef,s=c2FsdA==,i=4095", "it wants 4095 iterations"),
        ("r=abcdef,s=c2FsdA==,i=2000000000", "it wants 2000000000 iterations"),
        ("r=abcdef,s=c2FsdA==", "it wants no iterations"),
        ("r=abcdef,s=?,i=4096", "no SCRAM"),
        ("m=x,r=abcdef,s=c2FsdA==,i=4096", "extension"),
        ("e=unknown-user", "it says unknown-user"),
    ],
)
def test_a_broker_whose_challenge_is_wrong_gets_no_proof(challenge: str, why: str) -> None:
    with pytest.raises(Distrusted, match=why):
        scram("SCRAM-SHA-256", "abc").answer(challenge.encode())


@pytest.mark.parametrize("final", [b"v=" + base64.b64encode(bytes(32)), b"v=", b"", b"e=other-error", b"\xff"])
def test_a_broker_that_does_not_know_the_password_is_not_believed(final: bytes) -> None:
    exchange = scram("SCRAM-SHA-256", "abc")
    exchange.answer(b"r=abcdef,s=c2FsdA==,i=4096")
    with pytest.raises(Distrusted):
        exchange.answer(final)


def test_plain_is_name_and_password_between_nuls() -> None:
    exchange = Plain(Sasl("PLAIN", "tim", "tanstaaftanstaaf"))  # RFC 4616
    assert exchange.first() == b"\0tim\0tanstaaftanstaaf"
    assert exchange.answer(b"") is None


def test_a_token_is_borne_with_its_extensions_and_a_refusal_is_acknowledged() -> None:
    exchange = OAuthBearer(Sasl("OAUTHBEARER", token="abc", extensions=(("tenant", "x"),)))
    assert exchange.first() == b"n,,\x01auth=Bearer abc\x01tenant=x\x01\x01"
    assert exchange.answer(b'{"status":"invalid_token"}') == b"\x01"
    assert exchange.answer(b"") is None


def test_secrets_are_not_in_what_is_printed() -> None:
    jaas = parse_jaas(f'{PLAIN_MODULE} required username="u" password="hunter2";')
    shown = repr((Sasl("PLAIN", "u", "hunter2", token="hunter2"), jaas))
    assert "hunter2" not in shown and "PlainLoginModule" in shown


# --- sasl.jaas.config -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "password"),
    [
        ('required username="alice" password="secret";', "secret"),
        ("required username=alice password=secret ;", "secret"),
        ("REQUIRED\n  username='alice'\n  password='se cret' ;", "se cret"),
        (r'required username="alice" password="a\"b\\c;=";', 'a"b\\c;='),
        (r'required username="alice" password="tab\tA\101";', "tab\tAA"),
        ('required serviceName="x" password="a=b" username="alice";', "a=b"),
    ],
)
def test_name_and_password_are_found_as_kafka_finds_them(text: str, password: str) -> None:
    jaas = parse_jaas(f"{PLAIN_MODULE} {text}")
    assert (jaas.module, jaas.options["username"], jaas.options["password"]) == ("PlainLoginModule", "alice", password)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("hunter2", "is not a login module"),
        ('a.B required password="hunter2"', "does not end with a semicolon"),
        ('a.B needed password="hunter2";', "has no required or requisite"),
        ('a.B required password="hunter2', "a quote that is never closed"),
        ("a.B required password hunter2;", 'not name="value"'),
        ('a.B required password="hunter2"; a.C required;', "more than one login module"),
    ],
)
def test_a_text_that_makes_no_sense_is_told_without_the_password(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as error:
        parse_jaas(text)
    assert "hunter2" not in str(error.value)
