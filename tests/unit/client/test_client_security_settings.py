"""Kafka's and librdkafka's names of TLS and SASL, and what is said where they don't fit."""

from __future__ import annotations

import pytest

from headpond.client.security import PLAINTEXT, Sasl, Security
from headpond.client.security_settings import SecurityMistake, parse_security
from headpond.ports import Tls

SECRET = "hunter2-and-more"
CERTIFICATE = "-----BEGIN CERTIFICATE-----\nQUJD\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nREVG\n-----END PRIVATE KEY-----\n"
SSL = {"security.protocol": "SSL"}
SASL = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"}
NAMED = "sasl.jaas.config or sasl.username and sasl.password:"
TOKEN_FILE = "sasl.oauthbearer.token.endpoint.url"


def parse(settings: dict[str, str]) -> Security:
    return parse_security(settings, {"/token": b"  abc.def.\n", "/empty": b"\n", "/odd": b"\xff"}.__getitem__)


def wrong(settings: dict[str, str]) -> str:
    with pytest.raises(SecurityMistake) as error:
        parse(settings)
    assert SECRET not in f"{error.value!r} {error.value.__cause__!r}"
    return str(error.value)


def test_without_a_protocol_there_is_no_security_and_its_settings_are_left_alone() -> None:
    assert parse({}) == parse({"ssl.keystore.password": SECRET, "sasl.jaas.config": "?", "group.id": "x"}) == PLAINTEXT


def test_java_and_librdkafka_mean_the_same_files() -> None:
    java = {
        "ssl.truststore.type": "pem",
        "ssl.truststore.location": "/ca.pem",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": "/own.pem",
        "ssl.key.password": SECRET,
    }
    expected = Tls(trusted_path="/ca.pem", certificate_path="/own.pem", key_password=SECRET)
    assert parse({**SSL, **java}) == Security(tls=expected)
    librdkafka = {
        "ssl.ca.location": "/ca.pem",
        "ssl.certificate.location": "/own.pem",
        "ssl.key.location": "/own.key",
    }
    expected = Tls(trusted_path="/ca.pem", certificate_path="/own.pem", key_path="/own.key")
    assert parse({**SSL, **librdkafka}) == Security(tls=expected)


def test_pem_in_a_setting_may_have_lost_its_line_breaks() -> None:
    given = {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": (CERTIFICATE * 2).replace("\n", " "),
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": CERTIFICATE.replace("\n", ""),
        "ssl.keystore.key": KEY.replace("\n", " "),
    }
    tls = parse({**SSL, **given}).tls
    assert tls == Tls(trusted_pem=CERTIFICATE * 2, certificate_pem=CERTIFICATE + KEY)
    assert "REVG" not in repr(tls)


@pytest.mark.parametrize(("text", "is_checked"), [("https", True), ("HTTPS", True), ("", False), ("none", False)])
def test_the_host_name_is_checked_unless_it_is_said_otherwise(text: str, is_checked: bool) -> None:
    tls = parse({**SSL, "ssl.endpoint.identification.algorithm": text}).tls
    assert tls is not None and tls.is_host_checked == is_checked


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"security.protocol": SECRET}, "security.protocol is one of PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL"),
        (
            {"ssl.trustore.location": "x"},
            "unknown setting ssl.trustore.location, did you mean ssl.truststore.location?",
        ),
        ({"sasl.pasword": SECRET}, "unknown setting sasl.pasword, did you mean sasl.password?"),
        ({"ssl.engine.factory.class": "x"}, "ssl.engine.factory.class can't be set: there is no Java"),
        ({**SSL, "ssl.truststore.location": "x"}, "ssl.truststore.type is JKS unless it is said, and only PEM"),
        ({**SSL, "ssl.keystore.location": "x", "ssl.keystore.type": "PKCS12"}, "ssl.keystore.type is PKCS12, and only"),
        (
            {**SSL, "ssl.keystore.location": "x", "ssl.keystore.type": "PEM", "ssl.keystore.password": SECRET},
            "ssl.keystore.password can't be used with PEM: ssl.key.password opens a private key",
        ),
        (
            {**SSL, "ssl.ca.location": "x", "ssl.truststore.location": "y", "ssl.truststore.type": "PEM"},
            "ssl.truststore.location and ssl.ca.location contradict each other",
        ),
        ({**SSL, "ssl.key.location": "x"}, "ssl.key.location is given without the certificate"),
        ({**SSL, "ssl.certificate.pem": CERTIFICATE}, "ssl.certificate.pem needs the key in ssl.key.pem"),
        ({**SSL, "ssl.ca.pem": SECRET}, "ssl.ca.pem is not PEM"),
        ({**SSL, "ssl.enabled.protocols": "TLSv1"}, "ssl.enabled.protocols has TLSv1, and there are only TLSv1.2 and"),
        ({**SSL, "ssl.endpoint.identification.algorithm": "x"}, "ssl.endpoint.identification.algorithm is https, or"),
        ({"security.protocol": "SASL_SSL"}, "sasl.mechanism is missing, which in Kafka means GSSAPI: PLAIN,"),
        ({**SASL, "sasl.mechanism": "GSSAPI"}, "sasl.mechanism is GSSAPI, and only PLAIN,"),
        ({**SASL, "sasl.mechanisms": "SCRAM-SHA-256"}, "sasl.mechanism and sasl.mechanisms contradict each other"),
        (
            {**SASL, "sasl.username": "u", "sasl.password": f"{SECRET}\ud800"},
            f"{NAMED} a name or password that is no Unicode text",
        ),
        ({**SASL, "sasl.username": "u", "sasl.password": f"{SECRET}\0"}, f"{NAMED} a name or password with a NUL"),
        ({**SASL, "sasl.username": "u"}, "sasl.jaas.config or sasl.username and sasl.password: no password"),
        ({**SASL, "sasl.jaas.config": f"a.B required password={SECRET};"}, "sasl.jaas.config has no username"),
        ({**SASL, "sasl.jaas.config": SECRET}, "sasl.jaas.config is not a login module"),
        (
            {**SASL, "sasl.jaas.config": f"a.B required username=u password={SECRET};", "sasl.password": SECRET},
            "sasl.jaas.config and sasl.username contradict each other",
        ),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER", TOKEN_FILE: "https://x"}, f"{TOKEN_FILE} should be file:///PATH"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER", TOKEN_FILE: "file:///empty"}, f"{TOKEN_FILE}: /empty holds no"),
        ({**SASL, "sasl.mechanism": "OAUTHBEARER", TOKEN_FILE: "file:///odd"}, f"{TOKEN_FILE}: /odd holds no"),
    ],
)
def test_a_mistake_is_one_sentence_that_begins_with_the_setting(settings: dict[str, str], why: str) -> None:
    said = wrong(settings)
    assert said.startswith(why) and "\n" not in said


def test_who_we_are_comes_from_jaas_or_from_librdkafkas_names() -> None:
    jaas = 'org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";'
    expected = Security(sasl=Sasl("SCRAM-SHA-512", "u", "p"))
    assert parse({**SASL, "sasl.mechanism": "scram-sha-512", "sasl.jaas.config": jaas}) == expected
    named = {"sasl.mechanisms": "SCRAM-SHA-512", "sasl.username": "u", "sasl.password": "p"}
    assert parse({"security.protocol": "sasl_plaintext", **named}) == expected


def test_a_token_comes_from_a_file() -> None:
    module = 'x.OAuthBearerLoginModule required extension_tenant="blue";'
    given = {**SASL, "sasl.mechanism": "OAUTHBEARER", TOKEN_FILE: "file:/token", "sasl.jaas.config": module}
    assert parse(given).sasl == Sasl("OAUTHBEARER", token="abc.def.", extensions=(("tenant", "blue"),))
