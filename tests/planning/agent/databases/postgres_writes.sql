DELETE FROM cities
SET TRANSACTION READ WRITE; DELETE FROM cities
SELECT set_config('transaction_read_only', 'off', true), wipe()
SELECT nextval('numbers')
SELECT lo_unlink(4711)
SELECT pg_notify('canary', 'x')
