-- The pauses, the oldest first, one row: channels, tenants, times. Empty texts mean all.
select coalesce(array_agg(coalesce(canal, '') order by creado_en, canal, {{tenant}}), '{}'),
       coalesce(array_agg(coalesce({{tenant}}::text, '') order by creado_en, canal, {{tenant}}), '{}'),
       coalesce(array_agg(creado_en order by creado_en, canal, {{tenant}}), '{}')
from {{pause_table}}
