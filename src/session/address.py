"""Places of stores: paths of files and addresses of servers, and how messages show an address."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote

from session.errors import StoreError

_WORDS: Final = "host|hostaddr|port|dbname|user|password|passfile|service|servicefile|options|ssl\\w+"
_IS_ADDRESS: Final = re.compile(
    r"\s*(?:\w[\w+.:-]+:/|\w*/{0,2}[^/\s]*:[^/\s]*@|\w+\s*=\s*\S*\s+\w+\s*=|"
    rf"(?:.*\s)?(?:{_WORDS})\s*=)",
    re.DOTALL,
)
_HOST: Final = r"(?:\[[\da-fA-F:.]*\]|[\w.%-]*)(?::\d*)?"
_URL: Final = re.compile(
    rf"\s*([\w+.-]+)://(?:[^/?:@]*(?::[^/?]*)?@)?({_HOST}(?:,{_HOST})*(?:/[\w.-]*)?)(\?.*)?", re.DOTALL
)
_SHOWN: Final = re.compile(r"\?(?:(?:schema|sslmode|connect_timeout|target_session_attrs)=[\w.-]*&?)*")
_WORD: Final = re.compile(r"\s*(\w+)\s*=\s*('(?:[^'\\]|\\.)*'|(?:[^\s'\\]|\\.)*)(?=\s|$)")
_ENDS: Final = re.compile(r"([\s/]+)")
_PASSWORD: Final = re.compile(
    r"((?:pass|pwd)\w{0,30}\s{0,9}=\s{0,9})(?:'(?:[^'\\]|\\.){0,999}'|[^\s&'\"]+)", re.IGNORECASE
)
_PLACE: Final = re.compile(r"[\w.,:%/-]*")


def is_address(place: str) -> bool:
    """True if a place is an address, or was meant to be one, and not the path of a file."""
    return _IS_ADDRESS.match(place) is not None


def show_address(place: str) -> str:
    """An address as messages show it: its host, port and database; never its user and password."""
    scheme, found, _ = place.partition("://")
    if found and "=" not in scheme:
        url = _URL.fullmatch(place)
        if url is None or "@" in (url[3] or ""):
            return f"{scheme.strip()}://..." if scheme.strip().replace("+", "").isalnum() else "..."
        return f"{url[1]}://{url[2]}{url[3] if url[3] and _SHOWN.fullmatch(url[3]) else ''}"
    words = {name: value.strip("'") for name, value in _WORD.findall(place)}
    parts = (words.get("hostaddr") or words.get("host"), words.get("port"))
    shown = f"{':'.join(part for part in parts if part)}/{words.get('dbname', '')}"
    is_whole = not _WORD.sub("", place).strip() and _PLACE.fullmatch(shown)
    return f"postgresql://{shown}" if is_whole else "postgresql://..." if "=" in place else "..."


def hide_secrets(text: str) -> str:
    """A message without the users and passwords of the addresses that it quotes."""
    before, shown = "", list[str]()
    for part in _ENDS.split(text):
        user, found, host = part.rpartition("@")
        is_user = before.endswith("//") or (":" in user[1:] and not before.endswith("/"))
        shown.append(host if found and is_user and not part.startswith("USER:PASSWORD@") else part)
        before = part
    return _PASSWORD.sub(r"\1...", "".join(shown))


def database_of(place: str) -> tuple[str, str]:
    """The address of a PostgreSQL database, and the schema in it: its option ``schema``, else ``sessions``.

    Raises:
        StoreError: It is the address of something else.
    """
    scheme, found, rest = place.strip().partition("://")
    if "=" in scheme:
        return place, "sessions"
    if scheme.lower() not in {"postgresql", "postgres"} or not found:
        where = f"{scheme}://" if scheme.replace("+", "").isalnum() and found else "this place"
        raise StoreError(
            f"stores at {where} are not supported; give a SQLite file, or postgresql://HOST/DATABASE"
        )
    address, _, options = rest.partition("?")
    words = options.split("&") if options else []
    schemas = [unquote(word.removeprefix("schema=")) for word in words if word.startswith("schema=")]
    others = "&".join(word for word in words if not word.startswith("schema="))
    more = f"?{others}" if others else ""
    return f"{scheme.lower()}://{address}{more}", schemas[-1] if schemas else "sessions"
