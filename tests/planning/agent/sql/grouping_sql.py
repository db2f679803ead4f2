"""Statements with aggregates: those whose answer SQLite would take from any row, and those that are sound.

A statement begins at the beginning of a line, and goes on in those that are indented.
"""

from __future__ import annotations

import re

_ARBITRARY = """
SELECT c.FirstName, i.Total, COUNT(*) FROM Customer AS c JOIN Invoice AS i ON i.CustomerId =
    c.CustomerId GROUP BY c.CustomerId
WITH t AS (SELECT CustomerId, BillingCity, SUM(Total) AS s FROM Invoice GROUP BY CustomerId,
    BillingCity) SELECT CustomerId, s, COUNT(*) FROM t GROUP BY CustomerId
WITH t AS (SELECT Total AS s FROM Invoice) SELECT s, COUNT(*) FROM t
SELECT BillingCountry, SUM(Total) FROM Invoice
SELECT BillingCity, BillingCountry, SUM(Total) FROM Invoice GROUP BY BillingCountry
SELECT * FROM Invoice GROUP BY BillingCountry
SELECT *, COUNT(*) FROM Invoice
SELECT Name, COUNT(*) FROM Track
SELECT t.Name, COUNT(*) FROM Track t GROUP BY t.AlbumId
SELECT Artist.Name, Album.Title, COUNT(*) FROM Artist JOIN Album ON Album.ArtistId = Artist.ArtistId
    GROUP BY Artist.ArtistId
SELECT upper(BillingCountry) AS c, AVG(Total) FROM Invoice
SELECT BillingCountry || ' ' || BillingCity, COUNT(*) FROM Invoice GROUP BY BillingCountry
SELECT CASE WHEN Total > 2 THEN 'big' ELSE 'small' END AS size, COUNT(*) FROM Invoice
SELECT max(Total), min(Total), BillingCountry FROM Invoice
SELECT max(DISTINCT Total), BillingCountry FROM Invoice
SELECT BillingCountry, SUM(Total) AS Total FROM Invoice GROUP BY BillingCountry HAVING Total > 1
SELECT BillingCountry FROM Invoice GROUP BY BillingCountry ORDER BY InvoiceDate
SELECT BillingCountry, COUNT(*) FROM Invoice GROUP BY 1 ORDER BY Total DESC
WITH t AS (SELECT BillingCountry, SUM(Total) AS s FROM Invoice) SELECT * FROM t
SELECT * FROM (SELECT BillingCountry, SUM(Total) AS s FROM Invoice)
SELECT BillingCountry, SUM(Total) FROM Invoice UNION ALL SELECT 'all', SUM(Total) FROM Invoice
SELECT 'all', SUM(Total) FROM Invoice UNION ALL SELECT BillingCountry, SUM(Total) FROM Invoice
SELECT (SELECT Name FROM Artist a WHERE a.ArtistId = al.ArtistId), COUNT(*) FROM Album al
SELECT FirstName, (SELECT InvoiceDate || SUM(Total) FROM Invoice i WHERE i.CustomerId = c.CustomerId)
    FROM Customer c
SELECT e.LastName, b.LastName, COUNT(*) FROM Employee e JOIN Employee b ON e.ReportsTo = b.EmployeeId
    GROUP BY b.EmployeeId
SELECT strftime('%Y', InvoiceDate), strftime('%m', InvoiceDate), SUM(Total) FROM Invoice GROUP BY
    strftime('%Y', InvoiceDate)
SELECT InvoiceDate, SUM(Total) FROM Invoice GROUP BY strftime('%Y', InvoiceDate)
SELECT BillingCity AS BillingCountry, SUM(Total) FROM Invoice GROUP BY BillingCountry
SELECT a.Name, COUNT(*) FROM Artist a LEFT JOIN Album b ON b.ArtistId = a.ArtistId GROUP BY b.ArtistId
SELECT c.Country, i.Total, count(*) FROM Customer c JOIN Invoice i USING (CustomerId) GROUP BY
    c.CustomerId
SELECT Total, SUM(Total) OVER () , COUNT(*) FROM Invoice
SELECT BillingCountry, COUNT(*) FILTER (WHERE Total > 1) FROM Invoice
SELECT BillingCountry, group_concat(BillingCity) FROM Invoice
SELECT DISTINCT BillingCountry, SUM(Total) FROM Invoice
SELECT [BillingCountry], "Total" FROM Invoice GROUP BY BillingCountry
SELECT Invoice.*, SUM(il.Quantity) FROM Invoice JOIN InvoiceLine il USING (InvoiceId) GROUP BY
    Invoice.CustomerId
SELECT CAST(Total AS INTEGER), COUNT(*) FROM Invoice GROUP BY BillingCountry
SELECT BillingCountry, total(Total) FROM Invoice
SELECT Country, SUM(Total) FROM Sales
SELECT InvoiceDate, COUNT(*) FROM Invoice WHERE BillingCountry = 'USA' OR Total > 1
SELECT BillingCountry, COUNT(*) FROM Invoice WHERE BillingCountry IN ('USA','Norway')
SELECT rowid, COUNT(*) FROM Invoice
SELECT BillingCountry b, COUNT(*) FROM Invoice
SELECT json_group_array(BillingCity), BillingCountry FROM Invoice
SELECT COUNT(*) + Total FROM Invoice
SELECT BillingCountry FROM Invoice GROUP BY BillingCountry HAVING max(Total) > 1 AND min(Total) > 0 AND
    BillingCity = 'Oslo'
SELECT BillingCountry, COUNT(*) FROM Invoice ORDER BY COUNT(*) DESC LIMIT 1
SELECT Country, SUM(Total) FROM (SELECT c.Country, i.Total FROM Customer c JOIN Invoice i USING
    (CustomerId))
SELECT BillingCountry IS DISTINCT FROM 'USA', COUNT(*) FROM Invoice
SELECT t.AlbumId, al.Title, COUNT(*) FROM Track t LEFT JOIN Album al ON al.AlbumId = t.AlbumId AND
    t.Milliseconds > 100 GROUP BY t.AlbumId
SELECT al.Title, COUNT(*) FROM Track t LEFT JOIN Album al ON al.AlbumId = t.AlbumId AND al.ArtistId =
    t.TrackId GROUP BY t.AlbumId
SELECT a.Title, count(*) FROM Album a FULL JOIN Track t ON t.AlbumId = a.AlbumId GROUP BY t.AlbumId
"""

_SOUND = """
WITH t AS (SELECT SUM(Total) AS s FROM Invoice) SELECT BillingCountry, SUM(Total) * 100 / t.s FROM
    Invoice, t GROUP BY BillingCountry
WITH t(s) AS (SELECT SUM(Total) FROM Invoice) SELECT BillingCountry, SUM(Total) / s FROM Invoice CROSS
    JOIN t GROUP BY BillingCountry
SELECT i.BillingCountry, SUM(i.Total) / x.s FROM Invoice AS i, (SELECT SUM(Total) AS s FROM Invoice) AS
    x GROUP BY i.BillingCountry
WITH t AS (SELECT CustomerId, SUM(Total) AS s FROM Invoice GROUP BY CustomerId) SELECT c.FirstName, t.s,
    COUNT(*) FROM Customer AS c JOIN t ON t.CustomerId = c.CustomerId GROUP BY c.CustomerId
SELECT c.FirstName, c.LastName, SUM(i.Total) AS spent FROM Customer AS c JOIN Invoice AS i ON
    i.CustomerId = c.CustomerId GROUP BY c.CustomerId ORDER BY spent DESC
SELECT a.Title, x.n FROM Album AS a JOIN (SELECT AlbumId AS id, COUNT(*) AS n FROM Track GROUP BY
    AlbumId) AS x ON x.id = a.AlbumId GROUP BY x.id
SELECT Name, n FROM (SELECT ar.Name AS Name, COUNT(*) AS n FROM Artist AS ar JOIN Album AS al ON
    al.ArtistId = ar.ArtistId GROUP BY ar.Name) GROUP BY Name
WITH top AS (SELECT BillingCountry FROM Invoice ORDER BY Total DESC LIMIT 1) SELECT top.BillingCountry,
    COUNT(*) FROM Invoice AS i JOIN top ON top.BillingCountry = i.BillingCountry
SELECT BillingCountry, SUM(Total) FROM Invoice GROUP BY BillingCountry
SELECT billingcountry, SUM(Total) FROM Invoice GROUP BY BillingCountry
SELECT i.BillingCountry, SUM(i.Total) FROM Invoice i GROUP BY BillingCountry
SELECT BillingCountry, SUM(Total) FROM Invoice i GROUP BY i.BillingCountry
SELECT BillingCountry AS c, SUM(Total) FROM Invoice GROUP BY c
SELECT BillingCountry AS c, SUM(Total) FROM Invoice GROUP BY 1 ORDER BY c
SELECT BillingCountry c, SUM(Total) s FROM Invoice GROUP BY 1 HAVING s > 1 ORDER BY s DESC, c
SELECT Name, max(Milliseconds) FROM Track
SELECT Name, min(Milliseconds), COUNT(*) FROM Track
SELECT AlbumId, Name, max(Milliseconds) FROM Track GROUP BY AlbumId ORDER BY max(Milliseconds) DESC
SELECT Name FROM Track GROUP BY AlbumId HAVING max(Milliseconds) > 1
SELECT c.FirstName, c.LastName, SUM(i.Total) FROM Customer c JOIN Invoice i ON i.CustomerId =
    c.CustomerId GROUP BY c.CustomerId
SELECT FirstName, LastName, SUM(Total) FROM Customer JOIN Invoice USING (CustomerId) GROUP BY CustomerId
SELECT FirstName, LastName, SUM(Total) FROM Customer NATURAL JOIN Invoice GROUP BY CustomerId
SELECT c.FirstName, SUM(i.Total) FROM Customer c JOIN Invoice i ON i.CustomerId = c.CustomerId GROUP BY
    i.CustomerId
SELECT c.FirstName, SUM(i.Total) FROM Customer c, Invoice i WHERE i.CustomerId = c.CustomerId GROUP BY
    i.CustomerId
SELECT i.InvoiceId, c.FirstName, i.Total, SUM(l.Quantity) FROM Invoice i JOIN Customer c ON c.CustomerId
    = i.CustomerId JOIN InvoiceLine l ON l.InvoiceId = i.InvoiceId GROUP BY i.InvoiceId
SELECT i.*, COUNT(*) FROM Invoice i JOIN InvoiceLine l USING (InvoiceId) GROUP BY i.InvoiceId
SELECT Artist.Name, COUNT(Album.AlbumId) FROM Artist LEFT JOIN Album ON Album.ArtistId = Artist.ArtistId
    GROUP BY Artist.ArtistId
SELECT ar.Name, al.Title, COUNT(*) FROM Track t LEFT JOIN Album al ON al.AlbumId = t.AlbumId LEFT JOIN
    Artist ar ON ar.ArtistId = al.ArtistId GROUP BY t.AlbumId
SELECT strftime('%Y', InvoiceDate) AS y, SUM(Total) FROM Invoice GROUP BY y ORDER BY y
SELECT strftime('%Y', InvoiceDate), SUM(Total) FROM Invoice GROUP BY strftime('%Y', InvoiceDate)
SELECT strftime('%Y', i.InvoiceDate) || '!', SUM(Total) FROM Invoice i GROUP BY strftime('%Y',
    InvoiceDate) ORDER BY strftime('%Y', i.InvoiceDate)
SELECT CASE WHEN Total > 2 THEN 'big' ELSE 'small' END AS size, COUNT(*) FROM Invoice GROUP BY size
SELECT CASE WHEN Total > 2 THEN 'big' ELSE 'small' END size, COUNT(*) FROM Invoice GROUP BY CASE WHEN
    Total > 2 THEN 'big' ELSE 'small' END
SELECT COUNT(*) FROM Invoice
SELECT 'all' AS label, COUNT(*), date('now') IS NOT NULL, 5 FROM Invoice
SELECT Total, SUM(Total) OVER () FROM Invoice
SELECT BillingCountry, SUM(Total), RANK() OVER (ORDER BY SUM(Total) DESC) FROM Invoice GROUP BY
    BillingCountry
SELECT BillingCountry, SUM(SUM(Total)) OVER (ORDER BY BillingCountry) FROM Invoice GROUP BY
    BillingCountry
SELECT InvoiceId, row_number() OVER (PARTITION BY BillingCountry ORDER BY Total DESC) AS n FROM Invoice
SELECT FirstName, (SELECT SUM(Total) FROM Invoice i WHERE i.CustomerId = c.CustomerId) FROM Customer c
SELECT FirstName, (SELECT COUNT(*) FROM Invoice WHERE CustomerId = Customer.CustomerId) FROM Customer
SELECT FirstName, (SELECT c.FirstName || COUNT(*) FROM Invoice i WHERE i.CustomerId = c.CustomerId) FROM
    Customer c
SELECT BillingCountry, SUM(Total) * 100.0 / (SELECT SUM(Total) FROM Invoice) AS share FROM Invoice GROUP
    BY BillingCountry
SELECT max(Total, 1), BillingCountry FROM Invoice
SELECT min(Total, 3), max(1, 2) FROM Invoice ORDER BY Total
SELECT BillingCountry, COUNT(*) FILTER (WHERE Total > 2) AS n FROM Invoice GROUP BY BillingCountry
WITH t AS (SELECT BillingCountry AS c, SUM(Total) AS s FROM Invoice GROUP BY 1) SELECT c, s FROM t ORDER
    BY s DESC
WITH t AS (SELECT CustomerId, SUM(Total) AS s FROM Invoice GROUP BY CustomerId) SELECT AVG(s) FROM t
WITH Invoice AS (SELECT 1 AS x, 2 AS y) SELECT x, SUM(y) FROM Invoice GROUP BY x
SELECT Country, Total FROM Sales ORDER BY Total
SELECT * FROM Sales
SELECT DISTINCT BillingCountry FROM Invoice
SELECT BillingCountry, BillingCity, SUM(Total) FROM Invoice GROUP BY BillingCountry, BillingCity
SELECT BillingCountry, BillingCity, SUM(Total) FROM Invoice GROUP BY 1, 2 ORDER BY 3 DESC
SELECT BillingCountry, SUM(Total) FROM Invoice WHERE BillingCountry = 'USA'
SELECT BillingCountry, SUM(Total) AS 'Sum of it' FROM Invoice GROUP BY BillingCountry ORDER BY "Sum of
    it"
SELECT BillingCountry, SUM(Total) AS "Total" FROM Invoice GROUP BY BillingCountry ORDER BY Total DESC
SELECT Email, FirstName, COUNT(*) FROM Customer GROUP BY Email
SELECT c.CustomerId, c.Email, t.s FROM Customer c JOIN (SELECT CustomerId, SUM(Total) AS s FROM Invoice
    GROUP BY CustomerId) t ON t.CustomerId = c.CustomerId
SELECT a.Name FROM Artist a WHERE a.ArtistId IN (SELECT ArtistId FROM Album GROUP BY ArtistId HAVING
    COUNT(*) > 1)
SELECT EXISTS (SELECT 1 FROM Invoice), COUNT(*) FROM Artist
SELECT COUNT(DISTINCT BillingCountry), avg(Total), group_concat(DISTINCT BillingCity) FROM Invoice
SELECT lower(BillingCountry) AS c, COUNT(*) FROM Invoice GROUP BY lower(BillingCountry) ORDER BY c
    COLLATE NOCASE DESC NULLS LAST
SELECT b.LastName, COUNT(*) FROM Employee e JOIN Employee b ON e.ReportsTo = b.EmployeeId GROUP BY
    b.EmployeeId
SELECT round(AVG(Total), 2) AS a, COUNT(*) AS n FROM Invoice HAVING n > 1
SELECT SUM(CASE WHEN BillingCountry = 'USA' THEN Total ELSE 0 END) AS usa FROM Invoice
SELECT BillingCountry, SUM(Total) FROM Invoice GROUP BY BillingCountry UNION ALL SELECT 'all',
    SUM(Total) FROM Invoice ORDER BY 2
SELECT substr(InvoiceDate, 1, 7) AS m, SUM(Total) t FROM Invoice GROUP BY m HAVING t > 0 ORDER BY m
    LIMIT 3
SELECT (BillingCountry), SUM(Total) FROM Invoice GROUP BY (BillingCountry)
SELECT COUNT(*) AS end FROM Invoice
SELECT CAST(strftime('%Y', InvoiceDate) AS INTEGER) AS y, COUNT(*) FROM Invoice GROUP BY y
SELECT * FROM Invoice GROUP BY InvoiceId
SELECT rowid, * FROM Invoice GROUP BY rowid
SELECT BillingCountry, (SELECT COUNT(*) FROM Customer WHERE Country = BillingCountry) FROM Invoice GROUP
    BY BillingCountry
SELECT i.BillingCountry, (SELECT COUNT(*) FROM Customer c WHERE c.Country = i.BillingCountry) AS n FROM
    Invoice i GROUP BY i.BillingCountry
SELECT t.Name, SUM(l.Quantity) AS sold FROM Track t INNER JOIN InvoiceLine l ON t.TrackId = l.TrackId
    GROUP BY t.TrackId, t.Name ORDER BY sold DESC
SELECT TRUE, NULL, CURRENT_DATE IS NOT NULL, COUNT(*) FROM Invoice
SELECT Name, max(Milliseconds) AS m FROM Track WHERE AlbumId IN (1, 2)
SELECT ar.Name, COUNT(*) FROM (Artist ar JOIN Album al ON ar.ArtistId = al.ArtistId) GROUP BY
    al.ArtistId
SELECT AlbumId, COUNT(*) FROM Track GROUP BY AlbumId ORDER BY COUNT(*) DESC, AlbumId
"""


def _statements(text: str) -> list[str]:
    return re.sub(r"\n +", " ", text.strip()).split("\n")


ARBITRARY = _statements(_ARBITRARY)
SOUND = _statements(_SOUND)
