SELECT * FROM people WHERE status = 'Active'
SELECT * FROM people WHERE status IN ('gone', 'lost')
SELECT * FROM people AS p JOIN cities c ON c.id = p.city_id WHERE c.name = 'bergen' AND p.name = 'Ada Lundt'
SELECT * FROM cities WHERE name = 'o''higgins' AND "postal code" = '5004'
SELECT * FROM people WHERE status = 'active'
SELECT * FROM people WHERE age = '30' OR age = 'thirty' OR name <> 'ada'
SELECT * FROM people WHERE upper(name) = 'ADA' OR nothing = 'ada'
SELECT * FROM strangers WHERE name = 'ada'
SELECT * FROM words WHERE eight = 'zzz' OR nine = 'zzz' OR many = 'zzz'
SELECT * FROM words WHERE many = 'Zebra' OR many = 'Quokka'
SELECT * FROM people WHERE status IN ('q1', 'q2', 'q3', 'q4', 'q5', 'q6')
SELECT * FROM 'unclosed
