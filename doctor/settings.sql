-- Settings as a new session of the relay gets them.   $1 names: text[]
-- statement_timeout as it was before limits.sql.
select name, case name when 'statement_timeout' then reset_val else setting end
from pg_catalog.pg_settings where name = any($1::text[])
