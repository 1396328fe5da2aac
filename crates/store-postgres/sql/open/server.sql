-- What kind of server this is, and who we are there.
SELECT current_setting('server_version_num')::integer, current_setting('server_encoding'), current_user::text
