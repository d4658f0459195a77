-- Which database of which server this is.
select current_database()::text, pg_postmaster_start_time()::text
