"""The errors of tools as values."""

from __future__ import annotations

import pytest

from planning import errors
from planning.errors import Problem, ToolValidationError, line_of, nearest, show, suggestion, unknown_option


def test_a_problem_can_always_be_written_to_a_client() -> None:
    assert Problem("bad \ud800 caf\u00e9").message == "bad \\ud800 caf\u00e9"


def test_one_problem_is_the_message_and_several_are_a_list() -> None:
    first, second = Problem("blank", "title"), Problem("unknown", "status")
    assert str(ToolValidationError("blank")) == "blank"
    assert not ToolValidationError("blank").nothing_changed  # who refuses may have changed something
    assert str(ToolValidationError(first)) == "title: blank"
    assert str(ToolValidationError([first])) == "title: blank"
    several = ToolValidationError(each for each in (first, second))
    assert str(several) == "2 problems:\n- title: blank\n- status: unknown"
    assert several.message == str(several)
    assert several.problems == (first, second)


@pytest.mark.parametrize("count", [1, 2, 60, 100_000])
def test_the_text_of_a_refusal_is_bounded_and_its_problems_are_whole(count: int) -> None:
    problem = Problem("x" * 100_000, "title")
    error = ToolValidationError([problem] * count)
    lines = error.message.split("\n")
    if count == 1:
        assert lines == [f"title: {'x' * 44_990}..."]
    else:
        shown = [f"- title: {'x' * 738}..."] * min(count, 60)
        more = ["- and 99940 more"] if count > 60 else []
        assert lines == [f"{count} problems:", *shown, *more]
    assert error.problems == (problem,) * count


@pytest.mark.parametrize(("length", "is_whole"), [(22_498, True), (22_499, False)])
def test_problems_are_cut_if_they_come_to_more_than_fits(length: int, is_whole: bool) -> None:
    lines = ToolValidationError([Problem("x" * length)] * 2).message.split("\n")
    assert (lines == ["2 problems:", *[f"- {'x' * length}"] * 2]) is is_whole


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("bogus", "'bogus'"),
        ("it's", '"it\'s"'),
        ("a\nb", "'a\\nb'"),
        ("\u2013", "'\\u2013'"),
        ("x" * 40, f"'{'x' * 40}'"),
        ("x" * 41, f"'{'x' * 37}...'"),
        (None, "a value of type NoneType"),
        (b"x" * 9_999, "a value of type bytes"),
    ],
)
def test_a_wrong_value_is_shown_short_and_in_ascii(value: object, shown: str) -> None:
    assert show(value) == shown


def test_the_option_that_means_the_same_is_named_where_there_is_such_an_option() -> None:
    assert unknown_option("Finished", ("open", "done")) == (
        "'Finished' is unknown; did you mean done? send one of open, done"
    )
    assert unknown_option("finished", ("open", "shut")) == "'finished' is unknown; send one of open, shut"
    assert unknown_option(["done"], ("done",)) == "a value of type list is unknown; send one of done"


@pytest.mark.parametrize(
    ("name", "known", "near"),
    [
        ("titel", ["details", "title"], "title"),
        ("calculate_tip_amount", ["calculate_discount", "calculate_tip"], "calculate_tip"),
        ("search_flight", ["search", "search_flights"], "search_flights"),
        ("search_flight_offers", ["search_hotels", "search_flight"], "search_flight"),
        ("steps", ["objective", "initial_steps"], "initial_steps"),
        ("weather", ["get_news", "get_weather"], "get_weather"),
        ("getWeather", ["get_weather"], "get_weather"),
        ("GET-WEATHER", ["get_weather"], "get_weather"),
        ("get_weather_current", ["get_current_weather"], "get_current_weather"),
        ("look", ["book", "hook"], "book"),
        ("get", ["get_weather"], None),
        ("end_time", ["start_time"], None),
        ("create_user", ["delete_user"], None),
        ("customer_name", ["customer_id"], None),
        ("customer_name", ["customre_nmae"], "customre_nmae"),
        ("point_x", ["point_y"], None),
        ("colour", ["title", "details"], None),
        ("x" * 100, ["x" * 99], "x" * 99),
        ("x" * 101, ["x" * 100], None),
        ("", ["a"], None),
        ("-", ["a", "_"], None),
        (7, ["7"], None),
        (None, ["None"], None),
        ("title", [], None),
    ],
)
def test_the_closest_name_is_suggested_or_none(name: object, known: list[str], near: str | None) -> None:
    assert nearest(name, known) == near


def test_a_wrong_name_gets_the_nearest_or_all_that_there_are() -> None:
    assert suggestion("serch", ["search", "book"], "tools") == "did you mean search?"
    assert suggestion("fly", ["search", "book"], "tools") == "the tools are search, book"
    assert suggestion("fly", (), "tools") == "the tools are none"
    assert suggestion("idOfStep", ["step_id", "id_of_step"], "fields") == "did you mean id_of_step?"
    assert suggestion("stepsIds", ["goal", "step_ids"], "fields") == "did you mean step_ids?"


def test_a_text_or_an_error_becomes_one_line_that_is_cut() -> None:
    assert errors.one_line("a\tb\nc\x1b") == "a b | c\\x1b"
    assert (line_of(ValueError(" a\n\tb\x1b ")), line_of("a  b")) == ("a b\\x1b", "a b")
    assert line_of("caf\u00e9 \u200b" * 20, 20) == "caf\u00e9 \\u200bcaf\u00e9 \\..."
