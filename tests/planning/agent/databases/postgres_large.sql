repeat('x', 2000000000)
repeat('x', 10000000)::bytea, repeat('x', 10000000)::bytea
array_fill(NULL::integer, ARRAY[3300000])
to_jsonb(repeat('x', 20000000))
ROW(repeat('x', 20000000))
