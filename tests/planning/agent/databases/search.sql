CREATE VIRTUAL TABLE papers USING fts5(title, body);
INSERT INTO papers VALUES ('One', 'hello world'), ('Two', 'bye');
CREATE VIRTUAL TABLE old USING fts4(body); INSERT INTO old VALUES ('hello again');
CREATE VIRTUAL TABLE boxes USING rtree(id, x1, x2); INSERT INTO boxes VALUES (1, 2, 3);
CREATE VIEW found AS SELECT title FROM papers WHERE papers MATCH 'hello';
