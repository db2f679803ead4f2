"""When the user is asked back: where the question names nothing that the database holds, and not else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planning.agent.clarify import clarify, tables_of

SHOP = """SQLite, 6 tables and 1 view

customers, 1,204 rows
  id INTEGER, primary key
  full_name TEXT, not null: 'Ada Lovelace', 'Grace Hopper', 'Edsger Dijkstra'
  email TEXT: 'ada@example.org', 'grace@example.org', 'edsger@example.org'
  city_id INTEGER -> cities.id: 1, 2, 7
  signedUpAt TEXT: '2024-01-03', '2024-02-11', '2024-02-12'

cities, 40 rows
  id INTEGER, primary key
  name TEXT: 'Zurich', 'Lyon', 'Turin'
  country TEXT: 'Switzerland', 'France', 'Italy'

products, 77 rows
  id INTEGER, primary key
  title TEXT: 'Chai', 'Espresso', 'Oolong tea'
  category TEXT: 'tea', 'coffee', 'cups'
  unit_price REAL: 18.0, 19.0, 10.0
  in_stock INTEGER: 39, 17, 13

orders, 8,300 rows
  id INTEGER, primary key
  customer_id INTEGER -> customers.id: 1, 2, 3
  ordered_on TEXT: '2024-03-01', '2024-03-02', '2024-03-04'
  shipped_on TEXT: '2024-03-03', '2024-03-05'
  status TEXT: 'open', 'shipped', 'cancelled'

order_items, 21,000 rows
  order_id INTEGER -> orders.id: 1, 2, 3
  product_id INTEGER -> products.id: 11, 42, 72
  quantity INTEGER: 12, 10, 5
  discount REAL: 0.0, 0.15

employees, 9 rows
  id INTEGER, primary key
  lastName TEXT: 'Fuller', 'Leverling', 'King'
  hire_date TEXT: '1992-05-01', '1992-08-14'
  manager_id INTEGER -> employees.id: 2, 5

view big_spenders
  full_name TEXT
  amount REAL
"""
ASKED = (
    "The question names nothing that the database holds. It holds customers, cities, products, orders,"
    " order_items, employees, big_spenders. What would you like to know of these?"
)

ORDINARY = """
How many customers are there?
How many orders did each customer place?
List all products
Show me the names of all employees.
Which product is the most expensive?
What is the average unit price of tea?
Who ordered the most last month?
How many clients do we have in France?
What was our revenue in March?
What were total sales by country?
Which buyers spent more than 100 euros?
What did Grace Hopper buy?
Who are our best customers?
How many people signed up this year?
Which items are out of stock?
What sells best?
How much did we earn in 2024?
Which goods cost less than ten?
Give me the top 5 categories.
What is the cheapest cup of coffee?
Where do most of our users live?
How many staff do we have?
Who is the boss of King?
Who hired Fuller?
Which shipments are late?
How many deliveries were cancelled?
What is the total value of purchases per week?
How many open invoices are there?
Find the email address of Ada
Is there a customer from Switzerland?
Count the rows in every table.
What columns does the biggest table have?
How old is the newest record?
What can I ask you?
What data do you have?
How often is oolong ordered?
How many prodcuts are there?
How many custmers live in Zurich?
orderItems per order?
What is the ratio of shipped_on to ordered_on?
When did the last worker start?
How much money came in on Mondays?
Which discounts were given?
Which towns have no customers?
Who has never bought anything?
What is the monthly turnover?
How many articles weigh on the stock?
Which colleague joined first?
show categorys
what about coffee
And in Lyon?
""".strip().splitlines()

STRANGE = """
What is the weather like tomorrow?
Who won the football match yesterday?
Tell me a joke.
How do I cook risotto?
What is the capital of Peru?
Who wrote Hamlet?
How deep is the Atlantic ocean?
What is the meaning of life?
Can you write a poem about the sea?
Which planets have rings?
How do I reset my password?
Where is the nearest hospital?
What does photosynthesis mean?
Which flights leave from Heathrow?
How many goals did Messi score?
Is it going to rain on the garden?
Why is the sky blue?
How many legs does a spider have?
""".strip().splitlines()


@pytest.mark.parametrize("question", ORDINARY)
def test_an_ordinary_question_is_not_asked_back(question: str) -> None:
    assert clarify(question, SHOP) is None


@pytest.mark.parametrize("question", STRANGE)
def test_a_question_about_something_else_is_asked_back(question: str) -> None:
    assert clarify(question, SHOP) == ASKED


def test_there_are_enough_of_both() -> None:
    assert (len(ORDINARY), len(STRANGE)) == (51, 18)


FOREIGN = """
Wie viele Kunden gibt es?
Was ist der Umsatz pro Jahr in Berlin?
Wer hat am meisten Tee bestellt?
Combien de clients avons-nous ?
Quel est le chiffre d'affaires de mars ?
Cuantos clientes hay en Madrid?
Quanti clienti ci sono in Italia?
Hoeveel klanten zijn er in Utrecht?
Wat is de omzet per maand?
Quantos clientes compraram no Porto?
Hur manga kunder finns det i Lund?
Ilu jest klientow?
顧客は何人いますか
Сколько здесь клиентов?
""".strip().splitlines()


@pytest.mark.parametrize("question", FOREIGN)
def test_a_question_in_another_language_is_not_judged(question: str) -> None:
    assert clarify(question, SHOP) is None


@pytest.mark.parametrize(
    "question", ["", " ", "?", "42", "Kundenzahl", "how many", "the", "SELECT 1", "\0\n"]
)
def test_what_says_too_little_is_not_judged(question: str) -> None:
    assert clarify(question, SHOP) is None


@pytest.mark.parametrize(
    ("question", "column"),
    [
        ("What about the signed ones?", "signedUpAt TEXT"),
        ("What about the SURNAME_OF_BOSS?", "bossSurname TEXT"),
        ("What are the addresses?", "shipping_address TEXT"),
        ("What are the countries?", "country TEXT"),
        ("What are the boxes?", "box TEXT"),
        ("What about the hiring?", "hired INTEGER"),
        ("What about the employers?", "employees TEXT"),
        ("What are the adresses?", "address TEXT"),
        ("What is the shipment?", "ship TEXT"),
        ("What about Müller?", "surname TEXT: 'Müller'"),
        ("What about ROSES?", "kind TEXT: 'rose'"),
        ("What about the sku?", "skuCode TEXT"),
        ("What does the http status say?", "HTTPStatus TEXT"),
    ],
)
def test_plurals_humps_underscores_and_slips_of_the_pen_are_forgiven(question: str, column: str) -> None:
    assert clarify(question, f"SQLite, 1 table\n\nzq, 3 rows\n  {column}\n") is None
    assert clarify(question, "SQLite, 1 table\n\nzq, 3 rows\n  xyz TEXT\n") == (
        "The question names nothing that the database holds. It holds zq."
        " What would you like to know of these?"
    )


@pytest.mark.parametrize(
    "schema", ["", "SQLite, 0 tables\n", "SQLite", "\n", "CREATE TABLE t (\n  a INT\n);\n"]
)
def test_where_no_table_is_known_nothing_is_asked(schema: str) -> None:
    assert clarify("What is the weather like?", schema) is None


def test_of_many_tables_the_first_twelve_are_named() -> None:
    tables = "".join(f"\nzq{number}, 1 row\n  xyz TEXT\n" for number in range(1, 15))
    assert clarify("What is the weather like?", f"SQLite, 14 tables\n{tables}") == (
        "The question names nothing that the database holds. It holds zq1, zq2, zq3, zq4, zq5, zq6, zq7, zq8,"
        " zq9, zq10, zq11, zq12 and 2 more. What would you like to know of these?"
    )


def test_tables_and_views_are_found_with_their_quotes() -> None:
    text = (
        'SQLite, 3 tables and 2 views\n\n"odd, name", 3 rows\n  a INTEGER\n\n"say ""hi""", 1 row\n'
        "  b TEXT: 'x'\n\nplain\n  c TEXT\n\nview v\n  d TEXT\n\nview \"two words\"\n  e TEXT\n"
    )
    assert tables_of(text) == ['"odd, name"', '"say ""hi"""', "plain", "v", '"two words"']
    assert tables_of(SHOP) == [
        "customers",
        "cities",
        "products",
        "orders",
        "order_items",
        "employees",
        "big_spenders",
    ]
    assert tables_of("SQLite\n);\n)\nCREATE TABLE t (a, b)\nthe end\n") == []


def test_a_question_of_many_words_is_not_judged() -> None:
    unknown = [f"qz{number}jx" for number in range(5_000)]
    assert clarify(f"What about {' '.join(unknown[:40])}?", SHOP) == ASKED
    assert clarify(f"What about {' '.join(unknown[:40] * 100)}?", SHOP) == ASKED
    assert clarify(f"What about {' '.join(unknown[:41])}?", SHOP) is None
    assert clarify(f"What about {' '.join(unknown)}?", SHOP) is None


@given(st.text(max_size=80), st.text(max_size=80))
def test_any_question_and_any_schema_are_judged_or_left_alone(question: str, schema: str) -> None:
    asked = clarify(question, schema)
    assert asked is None or asked.endswith("What would you like to know of these?")
