CREATE TABLE people (id INTEGER PRIMARY KEY, boss INTEGER REFERENCES people, a INT, b INT,
  FOREIGN KEY (a, b) REFERENCES pairs (a, b), FOREIGN KEY (b, a) REFERENCES pairs);
CREATE TABLE pairs (a INT, b INT, PRIMARY KEY (b, a)) WITHOUT ROWID;
CREATE TABLE exact (x INT NOT NULL UNIQUE, y ANY, z INT AS (x * 2) STORED, w INT AS (x + 1)) STRICT;
CREATE TABLE lost (x INT REFERENCES gone (id), y INT REFERENCES gone, z INT REFERENCES people (nix));
CREATE TABLE "Words" (words, untyped, "many words" LONG VARYING CHARACTER (3, 4), UNIQUE (words, untyped));
CREATE VIRTUAL TABLE search USING fts5(title, body UNINDEXED);
CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
CREATE VIEW both AS SELECT p.id, q.a AS "the a" FROM people AS p, pairs AS q;
CREATE VIEW broken AS SELECT nix FROM nowhere;
INSERT INTO exact VALUES (1, x'00'), (2, 'two');
INSERT INTO search VALUES ('a title', 'a body');
CREATE TABLE sampled (hundredth, later, alike);
WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 101)
  INSERT INTO sampled SELECT iif(x = 100, 5, NULL), iif(x = 101, 6, NULL), printf('%0200d%d', 0, x) FROM n;
