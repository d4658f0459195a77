-- Who asks, and whom.
select current_user::text, current_database()::text, pg_has_role(current_user, 'pg_read_all_stats', 'usage'),
  current_setting('server_version_num')::integer, current_setting('server_version'), pg_is_in_recovery(), pg_postmaster_start_time()::text
