-- For the transaction that follows in the same round trip: go by the indexes, whatever the statistics say. A plan made
-- while the table was nearly empty, and cached, would sort the whole backlog for each claim and search it for each result.
-- No jit: it takes far longer to compile the claim than to run it.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
