"""Words of questions, as data: which say nothing of what is asked for, and which are for the same things."""

from __future__ import annotations

from typing import Final

__all__ = ["ENGLISH", "FUNCTION", "GENERAL", "RELATED"]

# What a question in English has, and one in a language near to it has not: one of these must be in it.
# "was", "in", "an", "is", "of", "me", "do" and the like are words elsewhere, too.
ENGLISH: Final = frozenset(
    # One text, and not a list of some hundred: it is to be read.
    """
    about and are can could did does find from get give has have how list many much please show tell
    than that the their there these they this those were what when where which who whom whose why
    with without would you your
    """.split()  # noqa: SIM905 - as it says above
)
# What makes a question, and says nothing of what it is about.
FUNCTION: Final = frozenset(
    # One text, and not a list of some hundred: it is to be read.
    """
    a about above after again all also am an and any are as at be been before being below between
    both but by can could did do does doing down during each ever every few find for from further
    get give had has have having he her here hers him his how i if in into is it its just let like
    list me more most much many my name need no nor not now of off on once one only or order other
    our out over own per please put s same see select she should show so some such tell than that
    the their them then there these they this those through to too under until up us very want was
    we were what when where which while who whom whose why will with without would you your
    """.split()  # noqa: SIM905 - as it says above
)
# What is asked of any data.
GENERAL: Final = frozenset(
    # One text, and not a list of some hundred: it is to be read.
    """
    ago amount ask average avg bad best better big biggest column columns contain contained contains
    content contents count current currently daily data database date dates day days db different
    distinct entries entry everything exist exists field fields first future greatest group highest
    history hour hours item items know large larger largest last latest least long low lower lowest
    max maximum mean median min minimum minute minutes month monthly months new newer newest next
    now number numbers old older oldest overall past percent percentage period periods previous
    quarter quarters query question recent recently record records result results row rows schema
    share short since small smaller smallest sort sorted sum table tables test time times today
    tomorrow tonight top total totals trend type types unique until value values week weekly weeks
    worst year yearly years yesterday
    """.split()  # noqa: SIM905 - as it says above
)

RELATED: Final = (
    # Trade
    """
    sold sell sale sales seller revenue turnover earn earned earnings income profit money spend
    spent spending cost costs price prices priced pay paid payment payments expensive cheap cheapest
    dear worth buy bought buyer purchase purchased purchases invoice invoices order orders ordered
    transaction transactions bill billed amount total budget discount refund
    """.split(),  # noqa: SIM905 - a text is easier to read than a list
    # People
    """
    person persons people user users client clients customer customers member members employee
    employees staff worker workers colleague colleagues boss manager buyer buyers guest guests
    patient patients student students teacher author authors contact contacts owner name names
    """.split(),  # noqa: SIM905 - as above
    # Places
    """
    city cities town towns country countries place places location locations address addresses
    region regions state states street live lives living lived located
    """.split(),  # noqa: SIM905 - as above
    # Things
    """
    product products item items article articles good goods thing things stock inventory available
    sku
    """.split(),  # noqa: SIM905 - as above
    # Work
    """
    salary salaries wage wages earn earns pay paid hired employee employees department departments
    team teams job jobs position
    """.split(),  # noqa: SIM905 - as above
    # Films, music, books
    """
    film films movie movies song songs track tracks album albums artist artists band book books
    author title titles
    """.split(),  # noqa: SIM905 - as above
)
"""Words for things that are asked for together: one of them in a question is about any other in a schema."""
