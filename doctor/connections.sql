-- The limits on connections that apply to this session, how many are in use and how many there may be.
-- pg_stat_database, because pg_stat_activity does not tell everybody which sessions are clients'.
select 'max_connections' as what, (select sum(numbackends) from pg_catalog.pg_stat_database)::integer as used,
  current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
    - coalesce(current_setting('reserved_connections', true), '0')::integer as allowed
union all
select 'connection limit of database ' || quote_ident(d.datname), s.numbackends, d.datconnlimit
from pg_catalog.pg_database d join pg_catalog.pg_stat_database s on s.datid = d.oid
where d.datname = current_database() and d.datconnlimit >= 0
union all
select 'connection limit of role ' || quote_ident(r.rolname), (select count(*) from pg_catalog.pg_stat_activity where usesysid = r.oid)::integer, r.rolconnlimit
from pg_catalog.pg_roles r where r.rolname = session_user and r.rolconnlimit >= 0
