-- For the question that follows in the same round trip and transaction: it changes nothing, waits for nobody, ends soon,
-- means no function but the server's, and goes through the outbox by its index (see claim/planner.sql).
-- $1 the longest that it may take, in ms: text
select set_config('search_path', 'pg_catalog', true),
       set_config('transaction_read_only', 'on', true), set_config('statement_timeout', $1::text, true), set_config('lock_timeout', '100', true),
       set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('jit', 'off', true)
