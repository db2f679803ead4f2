DELETE FROM cities
COPY cities TO 'out.csv'
EXPORT DATABASE 'out'
ATTACH 'other.db'
INSTALL httpfs
SET threads = 1
