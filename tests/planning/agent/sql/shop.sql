CREATE TABLE cities (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE customers (
    id INTEGER PRIMARY KEY, name TEXT NOT NULL, city_id INTEGER REFERENCES cities, "order" TEXT,
    photo BLOB
);
CREATE TABLE visits (
    customer_id INTEGER REFERENCES customers(id), day TEXT, number INTEGER DEFAULT 1,
    month TEXT AS (substr(day, 1, 7)),
    PRIMARY KEY (customer_id, day), UNIQUE (day, number)
);
CREATE TABLE notes (customer_id INT, day TEXT, text, FOREIGN KEY (customer_id, day) REFERENCES visits);
CREATE VIEW big_spenders AS SELECT name, id * 1.5 AS total FROM customers;
INSERT INTO cities VALUES (1, 'Oslo'), (2, 'L''Aquila'), (7, 'Bern');
INSERT INTO customers VALUES (1, 'Ada', 1, 'x' || char(10) || 'y', x'00ff'), (2, 'Grace', 7, NULL, NULL),
    (3, 'Edsger', 2, NULL, NULL), (4, 'Barbara', 1, NULL, NULL);
