"""TLS and SASL under the names that Kafka's clients have for them, and librdkafka's.

    security = parse_security({"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", ...}, read_file)

Raises ``SecurityMistake``: one sentence that begins with the setting's name (or with "unknown setting") and never shows
a secret. As in Kafka, settings that the protocol has no use for are left alone, but unknown names are refused.

Not there   Java's key stores (JKS, PKCS12): certificates and keys are PEM, in files or in the setting itself. Kerberos,
            and tokens that are fetched: ``sasl.oauthbearer.token.endpoint.url`` names a file, which is read once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from headpond.client.jaas import Jaas, parse_jaas
from headpond.client.security import Mechanism, Sasl, Security
from headpond.model.nearest import nearest
from headpond.ports import Tls

ReadFile = Callable[[str], bytes]

PREFIXES = ("ssl.", "sasl.", "security.")
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MECHANISMS: tuple[Mechanism, ...] = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
TLS_VERSIONS = ("TLSv1.2", "TLSv1.3")

PROTOCOL = "security.protocol"
TRUSTED_TYPE, TRUSTED_PASSWORD = "ssl.truststore.type", "ssl.truststore.password"
TRUSTED_PATH, TRUSTED_PEM = "ssl.truststore.location", "ssl.truststore.certificates"
OWN_TYPE, OWN_PATH, OWN_PASSWORD = "ssl.keystore.type", "ssl.keystore.location", "ssl.keystore.password"
OWN_CHAIN, OWN_KEY = "ssl.keystore.certificate.chain", "ssl.keystore.key"
KEY_PASSWORD = "ssl.key.password"
HOST_CHECK = "ssl.endpoint.identification.algorithm"
VERSIONS = "ssl.enabled.protocols"
CA_PATH, CA_PEM = "ssl.ca.location", "ssl.ca.pem"
CERTIFICATE_PATH, CERTIFICATE_PEM = "ssl.certificate.location", "ssl.certificate.pem"
KEY_PATH, KEY_PEM = "ssl.key.location", "ssl.key.pem"
MECHANISM, MECHANISM_ALIAS = "sasl.mechanism", "sasl.mechanisms"
JAAS, USERNAME, PASSWORD = "sasl.jaas.config", "sasl.username", "sasl.password"
TOKEN_URL = "sasl.oauthbearer.token.endpoint.url"

OBEYED = (
    *(PROTOCOL, HOST_CHECK, VERSIONS, KEY_PASSWORD),
    *(TRUSTED_TYPE, TRUSTED_PATH, TRUSTED_PEM, TRUSTED_PASSWORD, CA_PATH, CA_PEM),
    *(OWN_TYPE, OWN_PATH, OWN_PASSWORD, OWN_CHAIN, OWN_KEY, CERTIFICATE_PATH, CERTIFICATE_PEM, KEY_PATH, KEY_PEM),
    *(MECHANISM, MECHANISM_ALIAS, JAAS, USERNAME, PASSWORD, TOKEN_URL),
)
IGNORED = (
    "security.providers",
    "ssl.keymanager.algorithm",
    "ssl.protocol",
    "ssl.provider",
    "ssl.secure.random.implementation",
    "ssl.trustmanager.algorithm",
)
"""Of Java's."""
IGNORED_PREFIXES = ("sasl.kerberos.", "sasl.login.", "sasl.oauthbearer.")
"""What they are about can't be had, or needs no help."""
_NO_JAVA = "can't be set: there is no Java to load a class"
REFUSED = {
    "sasl.client.callback.handler.class": _NO_JAVA,
    "sasl.login.callback.handler.class": _NO_JAVA,
    "sasl.login.class": _NO_JAVA,
    "ssl.engine.factory.class": _NO_JAVA,
    "ssl.cipher.suites": "can't be set: OpenSSL chooses, by the machine's policy",
}

SECRET_WORDS = ("password", "secret", "jaas", "keystore.key", "key.pem", "token", "credential")

_PEM = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.S)


class SecurityMistake(ValueError):
    """One sentence, without secrets."""


class UnknownSetting(SecurityMistake):
    def __init__(self, name: str, near: str | None) -> None:
        self._name, self._near = name, near
        super().__init__(self.shown(""))

    def shown(self, prefix: str) -> str:
        """The sentence, where settings are given with a prefix before their names."""
        return f"unknown setting {prefix}{self._name}{f', did you mean {prefix}{self._near}?' if self._near else ''}"


def is_security(name: str) -> bool:
    return name.startswith(PREFIXES)


def is_secret(name: str) -> bool:
    return any(word in name.lower() for word in SECRET_WORDS)


def parse_security(given: Mapping[str, str], read_file: ReadFile) -> Security:
    """``given`` may hold other settings; they are left alone."""
    settings = {name: value for name, value in given.items() if is_security(name)}
    for name in settings:
        _check_name(name)
    protocol = settings.get(PROTOCOL, "PLAINTEXT").strip().upper()
    if protocol not in PROTOCOLS:
        raise SecurityMistake(f"{PROTOCOL} is one of {', '.join(PROTOCOLS)}")
    return Security(
        tls=_tls(settings) if protocol.endswith("SSL") else None,
        sasl=_sasl(settings, read_file) if protocol.startswith("SASL") else None,
    )


def _check_name(name: str) -> None:
    if name in REFUSED:
        raise SecurityMistake(f"{name} {REFUSED[name]}")
    if name not in OBEYED and name not in IGNORED and not name.startswith(IGNORED_PREFIXES):
        raise UnknownSetting(name, nearest(name, OBEYED))


# --- TLS --------------------------------------------------------------------------------------------------------------


def _tls(settings: Mapping[str, str]) -> Tls:
    trusted = _one_of(settings, TRUSTED_PATH, TRUSTED_PEM, CA_PATH, CA_PEM)
    own = _one_of(settings, OWN_PATH, OWN_CHAIN, CERTIFICATE_PATH, CERTIFICATE_PEM)
    key = _one_of(settings, OWN_KEY, KEY_PATH, KEY_PEM)
    if trusted in (TRUSTED_PATH, TRUSTED_PEM):
        _check_store(settings, TRUSTED_TYPE, TRUSTED_PASSWORD, "the certificates to trust")
    if own in (OWN_PATH, OWN_CHAIN):
        _check_store(settings, OWN_TYPE, OWN_PASSWORD, "certificate and key")
    if key is not None and own is None:
        raise SecurityMistake(f"{key} is given without the certificate that it belongs to")
    is_text = own in (OWN_CHAIN, CERTIFICATE_PEM)
    if own is not None and is_text != (key in (OWN_KEY, KEY_PEM)):
        raise SecurityMistake(f"{own} needs the key in {_key_for(own)}")
    return Tls(
        trusted_path=_path(settings, trusted) if trusted in (TRUSTED_PATH, CA_PATH) else None,
        trusted_pem=_pem(settings, trusted) if trusted in (TRUSTED_PEM, CA_PEM) else None,
        certificate_path=_path(settings, own) if own is not None and not is_text else None,
        key_path=_path(settings, KEY_PATH) if key == KEY_PATH else None,
        certificate_pem=_pem(settings, own) + _pem(settings, key) if is_text else None,
        key_password=settings.get(KEY_PASSWORD),
        is_host_checked=_is_host_checked(settings),
        versions=_versions(settings),
    )


def _one_of(settings: Mapping[str, str], *names: str) -> str | None:
    """The one that is given."""
    given = [name for name in names if settings.get(name, "").strip()]
    if len(given) > 1:
        raise SecurityMistake(f"{given[0]} and {given[1]} contradict each other: give one of them")
    return given[0] if given else None


def _key_for(own: str) -> str:
    return {OWN_CHAIN: OWN_KEY, CERTIFICATE_PEM: KEY_PEM, CERTIFICATE_PATH: f"a file too: {KEY_PATH}"}.get(
        own, f"the same file, or in {KEY_PATH}"
    )


def _check_store(settings: Mapping[str, str], type_name: str, password_name: str, what: str) -> None:
    kind = settings.get(type_name, "").strip().upper()
    if kind != "PEM":
        is_what = f"is {kind}" if kind else "is JKS unless it is said"
        raise SecurityMistake(
            f"{type_name} {is_what}, and only PEM can be read: write {what} as PEM "
            "(keytool -importkeystore to PKCS12, then openssl pkcs12 -nodes) and say PEM"
        )
    if settings.get(password_name):
        raise SecurityMistake(f"{password_name} can't be used with PEM: {KEY_PASSWORD} opens a private key")


def _path(settings: Mapping[str, str], name: str) -> str:
    return settings[name].strip()


def _pem(settings: Mapping[str, str], name: str | None) -> str:
    """Blocks with their line breaks, which the text in a setting may have lost."""
    assert name is not None
    blocks = [
        f"-----BEGIN {kind}-----\n{_lines(body)}\n-----END {kind}-----\n" for kind, body in _PEM.findall(settings[name])
    ]
    if not blocks:
        raise SecurityMistake(f"{name} is not PEM: it begins with -----BEGIN ...-----")
    return "".join(blocks)


def _lines(body: str) -> str:
    if ":" in body:  # old keys with a password have headers, whose line breaks matter
        return body.strip()
    text = "".join(body.split())
    return "\n".join(text[start : start + 64] for start in range(0, len(text), 64))


def _is_host_checked(settings: Mapping[str, str]) -> bool:
    text = settings.get(HOST_CHECK, "https").strip().lower()
    if text not in ("https", "", "none"):
        raise SecurityMistake(f"{HOST_CHECK} is https, or empty for no check of the host name")
    return text == "https"


def _versions(settings: Mapping[str, str]) -> tuple[str, ...]:
    given = [one.strip() for one in settings.get(VERSIONS, "").split(",") if one.strip()]
    for one in given:
        if one not in TLS_VERSIONS:
            raise SecurityMistake(f"{VERSIONS} has {one}, and there are only {' and '.join(TLS_VERSIONS)}")
    return tuple(sorted(given))


# --- SASL -------------------------------------------------------------------------------------------------------------


def _sasl(settings: Mapping[str, str], read_file: ReadFile) -> Sasl:
    mechanism = _mechanism(settings)
    jaas = _jaas(settings)
    if mechanism == "OAUTHBEARER":
        extensions = {} if jaas is None else jaas.options
        return Sasl(
            mechanism,
            token=_token(settings, read_file),
            extensions=tuple(
                (name.removeprefix("extension_"), value)
                for name, value in sorted(extensions.items())
                if name.startswith("extension_")
            ),
        )
    username, password = settings.get(USERNAME), settings.get(PASSWORD)
    if jaas is not None:
        if username is not None or password is not None:
            raise SecurityMistake(f"{JAAS} and {USERNAME} contradict each other: give one of them")
        if jaas.options.get("tokenauth", "false").lower() == "true":
            raise SecurityMistake(f"{JAAS} has tokenauth, and delegation tokens can't be used")
        username, password = jaas.options.get("username"), jaas.options.get("password")
    where = f"{JAAS} has" if jaas is not None else f"{JAAS} or {USERNAME} and {PASSWORD}:"
    if not username:
        raise SecurityMistake(f"{where} no username, and {mechanism} needs one")
    if not password:
        raise SecurityMistake(f"{where} no password, and {mechanism} needs one")
    if "\0" in username + password:
        raise SecurityMistake(f"{where} a name or password with a NUL")
    if any("\ud800" <= sign <= "\udfff" for sign in username + password):
        raise SecurityMistake(f"{where} a name or password that is no Unicode text")
    return Sasl(mechanism, username, password)


def _mechanism(settings: Mapping[str, str]) -> Mechanism:
    given = {settings[name].strip().upper() for name in (MECHANISM, MECHANISM_ALIAS) if name in settings}
    if len(given) > 1:
        raise SecurityMistake(f"{MECHANISM} and {MECHANISM_ALIAS} contradict each other: give one of them")
    for mechanism in MECHANISMS:
        if mechanism in given:
            return mechanism
    known = f"{', '.join(MECHANISMS[:-1])} and {MECHANISMS[-1]} can be had"
    if not given:
        raise SecurityMistake(f"{MECHANISM} is missing, which in Kafka means GSSAPI: {known}")
    raise SecurityMistake(f"{MECHANISM} is {given.pop()}, and only {known}")


def _jaas(settings: Mapping[str, str]) -> Jaas | None:
    if not settings.get(JAAS, "").strip():
        return None
    try:
        return parse_jaas(settings[JAAS])
    except ValueError as error:
        raise SecurityMistake(f"{JAAS} {error}") from None


def _token(settings: Mapping[str, str], read_file: ReadFile) -> str:
    url = settings.get(TOKEN_URL, "").strip()
    if not url.startswith("file:"):
        raise SecurityMistake(f"{TOKEN_URL} should be file:///PATH of a token: none is fetched over the network")
    path = "/" + url.removeprefix("file:").lstrip("/")
    try:
        token = read_file(path).decode("ascii").strip()
    except OSError as error:
        raise SecurityMistake(f"{TOKEN_URL}: {path}: {error.strerror or 'it cannot be read'}") from None
    except UnicodeDecodeError:
        token = ""
    if not token or any(sign.isspace() or sign == "\x01" for sign in token):
        raise SecurityMistake(f"{TOKEN_URL}: {path} holds no token")
    return token
