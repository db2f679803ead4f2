"""The fields and unions of pydantic models: their errors are told in the words of all others."""

from __future__ import annotations

import datetime
import decimal
import uuid
from typing import Annotated, Literal

import pydantic
import pytest
from five_ways import problems
from pydantic import BaseModel, Field


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    sound: str


class Owner(BaseModel):
    pet: Annotated[Cat | Dog, Field(discriminator="kind")]


class Untold(BaseModel):
    pet: Cat | int


@pytest.mark.parametrize(
    ("kind", "arguments", "expected"),
    [
        (Cat, {"kind": "dog", "lives": 1}, ["kind: 'dog' is unknown; send one of cat"]),
        (Owner, {"pet": {"kind": "cat", "lives": "x"}}, ["pet.lives: expected an integer, got a string"]),
        (
            Owner,
            {"pet": {"kind": "cat", "lives": 9, "zzz": 1}},
            ["pet.zzz: unknown field; the fields are kind, lives, sound"],
        ),
        (Owner, {"pet": {"kind": "cow"}}, ["pet.kind: 'cow' is unknown; send one of cat, dog"]),
        (Owner, {"pet": {}}, ["pet.kind: missing; send cat or dog"]),
        (
            Owner,
            {"pet": 3},
            ["pet: expected an object with kind, lives or an object with kind, sound, got a number"],
        ),
        (Owner, {}, ["pet: missing; send an object with kind, lives or an object with kind, sound"]),
        (Untold, {"pet": "x"}, ["pet: expected an object with kind, lives or an integer, got a string"]),
    ],
)
def test_unions_are_told_apart(kind: type, arguments: object, expected: list[str]) -> None:
    assert problems(kind, arguments) == expected


class Fields(BaseModel):
    pair: tuple[int, str] = (1, "a")
    unique: set[int] = set()
    listed: list[int] = Field(default=[], min_length=1, max_length=2)
    by_number: dict[int, str] = {}
    text: str = Field(default="a", pattern="^a")
    even: int = Field(default=2, multiple_of=2)
    more: float = Field(default=1.0, gt=0, lt=2)
    price: decimal.Decimal = decimal.Decimal(1)
    number: uuid.UUID | None = None
    moment: datetime.datetime | None = None
    length: datetime.timedelta | None = None
    time: datetime.time | None = None
    address: pydantic.HttpUrl | None = None
    maybe: Annotated[int, Field(ge=1)] | None = None


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            {"pair": ["x", 1]},
            ["pair[0]: expected an integer, got a string", "pair[1]: expected a string, got a number"],
        ),
        ({"pair": [1]}, ["pair: expected at least 2 items, got 1 item"]),
        ({"unique": ["x"]}, ["unique[0]: expected an integer, got a string"]),
        ({"listed": []}, ["listed: expected at least 1 item, got 0 items"]),
        ({"listed": [1, 2, 3]}, ["listed: expected at most 2 items, got 3 items"]),
        ({"by_number": {"1": 5}}, ["by_number.1: expected a string, got a number"]),
        (
            {"by_number": {"x": "y"}},
            ["by_number.x: Input should be a valid integer, unable to parse string as an integer"],
        ),
        ({"text": "b"}, ["text: expected text that matches ^a, got other text"]),
        ({"even": 3}, ["even: expected a multiple of 2, got 3"]),
        ({"more": 0}, ["more: expected more than 0.0, got 0"]),
        ({"more": 2}, ["more: expected less than 2.0, got 2"]),
        ({"price": "x"}, ['price: expected a decimal number such as "1.50", got a string']),
        ({"number": "x"}, ["number: expected a UUID, got a string"]),
        ({"moment": "x"}, ["moment: expected a date and time such as 2026-01-31T12:00:00Z, got a string"]),
        ({"length": "x"}, ["length: expected a duration such as PT15M, got a string"]),
        ({"time": "x"}, ["time: expected a time such as 12:00:00, got a string"]),
        ({"address": "x"}, ["address: expected a URL of 1 to 2083 characters, got a string"]),
        ({"maybe": 0}, ["maybe: expected at least 1, got 0"]),
        ({"maybe": "x"}, ["maybe: expected an integer of at least 1, got a string"]),
    ],
)
def test_a_mistake_in_a_field_is_told_in_the_usual_words(arguments: object, expected: list[str]) -> None:
    assert problems(Fields, arguments) == expected
