CREATE TABLE Artist (ArtistId INTEGER PRIMARY KEY, Name TEXT);
CREATE TABLE Album (AlbumId INTEGER PRIMARY KEY, Title TEXT NOT NULL, ArtistId INTEGER NOT NULL);
CREATE TABLE Track (
  TrackId INTEGER PRIMARY KEY, Name TEXT NOT NULL, AlbumId INTEGER, Milliseconds INTEGER NOT NULL,
  UnitPrice DOUBLE NOT NULL);
CREATE TABLE Employee (
  EmployeeId INTEGER PRIMARY KEY, LastName TEXT NOT NULL, FirstName TEXT NOT NULL, ReportsTo INTEGER,
  HireDate TEXT);
CREATE TABLE Customer (
  CustomerId INTEGER PRIMARY KEY, FirstName TEXT NOT NULL, LastName TEXT NOT NULL, Country TEXT,
  Email TEXT NOT NULL UNIQUE, SupportRepId INTEGER);
CREATE TABLE Invoice (
  InvoiceId INTEGER PRIMARY KEY, CustomerId INTEGER NOT NULL, InvoiceDate TEXT NOT NULL, BillingCity TEXT,
  BillingCountry TEXT, Total DOUBLE NOT NULL);
CREATE TABLE InvoiceLine (
  InvoiceLineId INTEGER PRIMARY KEY, InvoiceId INTEGER NOT NULL, TrackId INTEGER NOT NULL,
  UnitPrice DOUBLE NOT NULL, Quantity INTEGER NOT NULL);
CREATE VIEW Sales AS
  SELECT BillingCountry AS Country, SUM(Total) AS Total FROM Invoice GROUP BY BillingCountry;
INSERT INTO Artist VALUES (1, 'Accept'), (2, 'Aerosmith'), (3, 'Nobody');
INSERT INTO Album VALUES (1, 'Restless', 1), (2, 'Big Ones', 2), (3, 'Pump', 2);
INSERT INTO Track VALUES (1, 'Fast', 1, 100, 0.99), (2, 'Walk', 2, 300, 0.99), (3, 'Cry', 3, 200, 1.99);
INSERT INTO Employee VALUES
  (1, 'Adams', 'Andrew', NULL, '2002-08-31'), (2, 'Peacock', 'Jane', 1, '2002-04-01');
INSERT INTO Customer VALUES (1, 'Ada', 'L', 'USA', 'a@x.org', 2), (2, 'Bob', 'M', 'Norway', 'b@y.org', 2);
INSERT INTO Invoice VALUES
  (1, 1, '2022-01-05 00:00:00', 'Boston', 'USA', 5.0), (2, 2, '2022-02-06 00:00:00', 'Oslo', 'Norway', 3.0),
  (3, 1, '2021-01-07 10:30:00', 'Reno', 'USA', 2.0);
INSERT INTO InvoiceLine VALUES (1, 1, 1, 0.99, 1), (2, 2, 2, 0.99, 2), (3, 3, 3, 1.99, 1);
