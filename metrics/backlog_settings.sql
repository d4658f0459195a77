-- For the transaction that follows in the same round trip: go by the index, whatever the statistics say.
select set_config('enable_seqscan', 'off', true), set_config('enable_bitmapscan', 'off', true),
       set_config('enable_sort', 'off', true), set_config('jit', 'off', true)
