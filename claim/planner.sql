-- For the transaction that follows in the same round trip: go by the indexes, whatever the statistics say. A plan made
-- while the table was nearly empty, and cached, would sort the whole backlog for each claim and search it for each result.
-- No jit: it takes half a second to compile what then runs for half a millisecond.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true), set_config('enable_sort', 'off', true),
       set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true), set_config('jit', 'off', true)
